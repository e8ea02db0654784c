"""A micro-batch scenario fitted to a recorded run."""
