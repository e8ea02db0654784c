"""What a function says to the Python process that runs it on an executor."""

from __future__ import annotations

import gc
from functools import cache


@cache
def spare_the_collector() -> None:
    """Once a process: PySpark collects garbage after every task, through all of pandas and Arrow. What is loaded by now
    stays loaded, so the collector need not look at it again."""
    gc.freeze()
