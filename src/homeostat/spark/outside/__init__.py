"""Watches a Spark application from another process: over REST and through its event log."""
