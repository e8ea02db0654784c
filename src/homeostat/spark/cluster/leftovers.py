"""Spark deletes its temporary files when a process ends. A process that was killed leaves them, and they accumulate."""

from __future__ import annotations

import shutil
from pathlib import Path

# The folder of temporary files below the directory of an application, and below that of the embedded cluster.
LOCAL = "local"
# What Spark makes there: blocks and shuffle files, and a folder for each worker and driver.
_MADE_BY_SPARK = ("blockmgr-*", "spark-*")


def remove_leftovers(directory: Path) -> None:
    """Call it before Spark starts, while no process uses the directory. What cannot be deleted stays."""
    for pattern in _MADE_BY_SPARK:
        for folder in (directory / LOCAL).glob(pattern):
            shutil.rmtree(folder, ignore_errors=True)
