"""State per key: variables, timers and handlers that you write, run on Spark or rehearsed in memory."""
