"""The command line. Whatever is heavy is imported inside the command that needs it."""
