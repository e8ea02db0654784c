"""A simulated micro-batch engine that works like Spark Structured Streaming."""
