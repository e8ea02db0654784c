"""Apache Kafka for tests, examples and the demo: a broker of its own, topics and rows."""
