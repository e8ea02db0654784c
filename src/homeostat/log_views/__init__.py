"""The data for viewers, read from the log: the same for the terminal, the dashboard and the API."""
