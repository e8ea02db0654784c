"""Settings for the Python processes that run functions on executors."""

from __future__ import annotations

import gc
from functools import cache


@cache
def spare_the_collector() -> None:
    """Exclude what is loaded now from garbage collection. Call it in each process; only the first call has an effect.

    PySpark collects garbage after every task, which otherwise goes through all of pandas and Arrow each time.
    """
    gc.freeze()
