"""Spark Structured Streaming as an engine of the loop: one running application, its queries and the user's API."""
