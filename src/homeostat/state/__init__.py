"""The state of streaming queries as their checkpoints hold it."""
