"""The loop at work: a manager for each query, the processes around it, and what it leaves for viewers."""
