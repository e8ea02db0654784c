"""What can be changed in a running Spark application, and how its queries are stopped and started."""
