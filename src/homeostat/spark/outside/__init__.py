"""A Spark application seen from another process: over REST and from its event log."""
