"""State that a user writes: variables, timers and handlers on one class, run by Spark or rehearsed in memory."""
