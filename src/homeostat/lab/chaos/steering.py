"""A detector that makes the manager fail on demand: it raises an error, hangs, ends, gets another clock or a full disk.

The bench names it as a plug-in and steers it with a file, since it runs in the driver's process.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from homeostat.core.findings import Symptom
    from homeostat.core.view import View

PLUG_IN = "homeostat.lab.chaos.steering:SteeredDetector"
FILE_VARIABLE = "CHAOS_STEERING"
LOOK_AGAIN_S = 0.1
_ASK = "_ask"  # the method that every request uses
_own_methods: dict[str, Callable[..., object]] = {}
RAISES, HANGS, ENDS = "raises", "hangs", "ends"


@dataclass(frozen=True, slots=True)
class Steering:
    """Orders for the detector. `clock_s` is added to the process's wall clock. No file may grow beyond `file_bytes`,
    unless it is 0. If `store_refuses`, the driver's status store does not answer, so that the sensors use the REST API.
    `number` tells two equal orders apart: the manager ends once for each."""

    number: int = 0
    manager: str = ""
    clock_s: float = 0.0
    file_bytes: int = 0
    store_refuses: bool = False


class EndedError(BaseException):
    """Nothing catches this, so the manager's thread ends."""


def write_steering(file: Path, steering: Steering) -> None:
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(steering)))
    draft.replace(file)


def read_steering(file: Path) -> Steering:
    return Steering(**json.loads(file.read_text())) if file.exists() else Steering()


class SteeredDetector:
    """Finds no symptoms. One thread per process follows the file: a manager without observations calls no detector."""

    name: ClassVar[str] = "steered"
    _lock: ClassVar[Lock] = Lock()
    _follower: ClassVar[Thread | None] = None
    _obeyed: ClassVar[int] = 0

    def __init__(self) -> None:
        self._file = Path(os.environ.get(FILE_VARIABLE, os.devnull))

    def detect(self, view: View) -> list[Symptom]:
        self._start_following()
        steering = read_steering(self._file)
        if steering.manager == RAISES:
            raise ValueError("the chaos bench makes the manager raise")
        if steering.manager == ENDS and steering.number != SteeredDetector._obeyed:
            SteeredDetector._obeyed = steering.number
            raise EndedError("the chaos bench ends the manager")
        while steering.manager == HANGS and read_steering(self._file) == steering:
            time.sleep(LOOK_AGAIN_S)
        return []

    def _start_following(self) -> None:
        with SteeredDetector._lock:
            if SteeredDetector._follower is None and self._file.parent.is_dir() and self._file != Path(os.devnull):
                SteeredDetector._follower = Thread(target=_follow, args=(self._file,), name="chaos", daemon=True)
                SteeredDetector._follower.start()


def _follow(file: Path) -> None:
    true_time = time.time
    obeyed = Steering()
    while True:
        steering = read_steering(file)
        if steering != obeyed:
            time.time = shifted_clock(true_time, steering.clock_s)
            limit_file_size(steering.file_bytes)
            refuse_store(steering.store_refuses)
            obeyed = steering
        time.sleep(LOOK_AGAIN_S)


def shifted_clock(true_time: Callable[[], float], seconds: float) -> Callable[[], float]:
    return (lambda: true_time() + seconds) if seconds else true_time


def refuse_store(refused: bool) -> None:
    """If `refused`, let every request to the driver's status store fail, as in a release of Spark that changed it."""
    from homeostat.spark.sense.status_store import StatusStore

    own = _own_methods.setdefault(_ASK, getattr(StatusStore, _ASK))
    setattr(StatusStore, _ASK, _refuse if refused else own)


def _refuse(*_: object, **__: object) -> object:
    from homeostat.spark.sense.sensor_error import SensorError

    raise SensorError("the chaos bench makes it refuse", where="the driver's status store")


def limit_file_size(file_bytes: int) -> None:
    """A write beyond the limit fails with an error, as on a full disk: Python ignores the signal for it."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes or hard, hard))
