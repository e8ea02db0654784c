"""A simulated dataflow: long-running instances, bounded queues and back-pressure."""
