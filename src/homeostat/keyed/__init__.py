"""Keyed state that a user writes: variables, timers and handlers, run by Spark or rehearsed in memory."""
