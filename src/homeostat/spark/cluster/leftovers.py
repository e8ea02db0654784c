"""Spark deletes its temporary files when a process ends. A process that was killed leaves them, and they accumulate."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path

# The folder of temporary files below the directory of an application, and below that of the embedded cluster.
LOCAL = "local"
# Below it: the files that Java unpacks for a process, such as 15 MB of RocksDB's library for each executor.
JAVA = "java"
# The files that Spark creates there: blocks and shuffle files, and a folder for each worker and driver.
_MADE_BY_SPARK = ("blockmgr-*", "spark-*", f"{JAVA}/*")
_LIBRARIES = f"{JAVA}/lib*.so*"
# A process loads a library moments after it was unpacked, and then no longer needs the file.
_LOADED_S = 3_600.0


def java_files(directory: Path) -> Path:
    """The folder of Java's temporary files, made if it is missing."""
    folder = directory / LOCAL / JAVA
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def remove_leftovers(directory: Path) -> None:
    """Call it before Spark starts, while no process uses the directory. What cannot be deleted stays."""
    for pattern in _MADE_BY_SPARK:
        for path in (directory / LOCAL).glob(pattern):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()


def remove_loaded_libraries(directory: Path) -> None:
    """Remove the libraries of executors that were killed. The application may be running."""
    for library in (directory / LOCAL).glob(_LIBRARIES):
        with suppress(OSError):
            if time.time() - library.stat().st_mtime > _LOADED_S:
                library.unlink()
