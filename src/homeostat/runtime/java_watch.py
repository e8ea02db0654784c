"""Ends the driver when its Java process has ended: it can do nothing without Spark. The supervisor restarts both."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable

JAVA_DIED = 5


def watch_java(stopping: threading.Event, say: Callable[[str], None]) -> None:
    """Call this once the session exists. If the process ends after a request to stop, that is not reported."""
    process = _java_process()
    if process is not None:
        threading.Thread(target=_wait, args=(process, stopping, say), name="homeostat java", daemon=True).start()


def _java_process() -> subprocess.Popen[bytes] | None:
    """None if another program has started Java, as spark-submit does."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    return process if isinstance(process, subprocess.Popen) else None


def _wait(process: subprocess.Popen[bytes], stopping: threading.Event, say: Callable[[str], None]) -> None:
    code = process.wait()
    if stopping.is_set():
        return
    say(f"Spark's Java process ended with code {code}; the driver ends too")
    os._exit(JAVA_DIED)  # at once, because a thread that waits for Java would keep the process alive
