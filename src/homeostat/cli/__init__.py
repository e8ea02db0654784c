"""The command line. Each command imports heavy modules only when it runs."""
