"""The detector does what its file says, in the process that it runs in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from homeostat.lab.chaos.steering import (
    FILE_VARIABLE,
    Steering,
    read_steering,
    refuse_store,
    shifted_clock,
    write_steering,
)
from homeostat.spark.sense.sensor_error import SensorError
from homeostat.spark.sense.status_store import StatusStore

PROGRAM = """
import sys, time
from pathlib import Path
from threading import Thread
from homeostat.lab.chaos.steering import EndedError, Steering, SteeredDetector, write_steering

file, view, detector = Path(sys.argv[1]), None, SteeredDetector()

def until(condition):
    while not condition():
        time.sleep(0.01)

assert detector.detect(view) == []
true_time = time.time
write_steering(file, Steering(1, clock_s=-3600.0))
until(lambda: time.time is not true_time)
assert -3601.0 < time.time() - true_time() < -3599.0
write_steering(file, Steering(2, file_bytes=1000))
until(lambda: time.time is true_time)

def is_full():
    try:
        file.with_name("large").write_bytes(bytes(2000))
    except OSError:
        return True
    return False

until(is_full)
write_steering(file, Steering(3))
until(lambda: not is_full())

write_steering(file, Steering(4, manager="raises"))
try:
    detector.detect(view)
except ValueError as error:
    print("raised:", error)

write_steering(file, Steering(5, manager="ends"))
try:
    detector.detect(view)
except EndedError as error:
    print("ended:", error)
assert detector.detect(view) == []

write_steering(file, Steering(6, manager="hangs"))
hung = Thread(target=detector.detect, args=(view,))
hung.start()
assert hung.is_alive()
write_steering(file, Steering(7))
hung.join()
print("went on")
"""


def test_a_detector_follows_its_file(tmp_path: Path) -> None:
    file = tmp_path / "steering.json"
    command = [sys.executable, "-c", PROGRAM, str(file)]
    done = subprocess.run(command, env=_environment(file), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "raised: the chaos bench makes the manager raise",
        "ended: the chaos bench ends the manager",
        "went on",
    ]


def test_without_a_file_nothing_is_unusual(tmp_path: Path) -> None:
    assert read_steering(tmp_path / "steering.json") == Steering()
    write_steering(tmp_path / "steering.json", Steering(3, "hangs"))
    assert read_steering(tmp_path / "steering.json") == Steering(3, "hangs")


def test_a_clock_is_shifted_by_so_many_seconds() -> None:
    assert shifted_clock(lambda: 5_000.0, -3_600.0)() == 1_400.0
    assert shifted_clock(lambda: 5_000.0, 0.0)() == 5_000.0


def _environment(file: Path) -> dict[str, str]:
    import os

    return {**os.environ, FILE_VARIABLE: str(file)}


def test_a_status_store_that_refuses_answers_again_afterwards() -> None:
    own = StatusStore._ask
    refuse_store(True)
    try:
        with pytest.raises(SensorError, match="makes it refuse"):
            StatusStore.jobs(StatusStore.__new__(StatusStore))
    finally:
        refuse_store(False)
    assert StatusStore._ask is own
