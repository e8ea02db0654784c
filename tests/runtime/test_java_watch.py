"""A driver without its Java process ends, unless it was asked to stop."""

from __future__ import annotations

import subprocess
import sys

from homeostat.runtime.java_watch import JAVA_DIED

PROGRAM = """
import subprocess, sys, threading, time
from homeostat.runtime.java_watch import _wait

java = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
stopping = threading.Event()
if sys.argv[1] == "stopping":
    stopping.set()
thread = threading.Thread(target=_wait, args=(java, stopping, lambda line: print(line, flush=True)), daemon=True)
thread.start()
thread.join()
print("goes on")
"""


def run(how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=False)


def test_the_driver_ends_with_its_java_process() -> None:
    done = run("running")
    assert done.returncode == JAVA_DIED
    assert done.stdout == "Spark's Java process ended with code 3; the driver ends too\n"


def test_an_end_after_an_order_to_stop_is_in_order() -> None:
    done = run("stopping")
    assert (done.returncode, done.stdout) == (0, "goes on\n")
