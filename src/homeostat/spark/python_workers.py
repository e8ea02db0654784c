"""Settings for the Python processes that run functions on executors."""

from __future__ import annotations

import gc
from functools import cache


@cache
def spare_the_collector() -> None:
    """Exclude all present objects from garbage collection. Call it in each process; only the first call has an effect.

    PySpark collects garbage after every task. Otherwise, each collection examines all objects of pandas and Arrow.
    """
    gc.freeze()
