"""One manager for one application: a second one finds the lease taken."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from homeostat.core.errors import HomeostatError


class LeaseTakenError(HomeostatError):
    """Another process steers this application."""


class Lease:
    """Held by a process until it lets go or dies, however it dies: the system takes the lock back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def take(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(file)
            os.close(file)
            raise LeaseTakenError(
                f"another manager steers this application{holder}",
                where=str(self._path.parent),
                fix="stop it first, or use another directory",
            ) from error
        os.ftruncate(file, 0)
        os.write(file, json.dumps({"process": os.getpid(), "since_s": time.time()}).encode())
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _holder(file: int) -> str:
    try:
        return f" (process {json.loads(os.pread(file, 1000, 0))['process']})"
    except (ValueError, KeyError, OSError):
        return ""
