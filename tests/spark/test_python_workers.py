"""Settings of the Python processes on executors."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import gc
from homeostat.spark.python_workers import spare_the_collector
spare_the_collector()
frozen = gc.get_freeze_count()
assert frozen > 0
extra = [[] for _ in range(1000)]
spare_the_collector()
assert gc.get_freeze_count() <= frozen
"""


def test_what_is_loaded_is_excluded_from_garbage_collection_once() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)
