"""What viewers see, read from the log: the same for the terminal, the dashboard and the API."""
