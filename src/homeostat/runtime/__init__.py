"""Runs the loop: a manager for each query, the processes around it, and the data for viewers."""
