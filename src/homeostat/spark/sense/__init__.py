"""What can be seen of a running Spark application, from the driver's own process and over REST."""
