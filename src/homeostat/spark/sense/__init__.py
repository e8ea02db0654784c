"""Reads what a running Spark application does, from inside the driver process and over REST."""
