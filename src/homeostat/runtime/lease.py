"""Makes sure that an application has only one manager: a second one finds the lease taken."""

from __future__ import annotations

import fcntl
import json
import os
import time
from abc import ABC, abstractmethod
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import ClassVar, Self

from homeostat.core.errors import HomeostatError


class LeaseTakenError(HomeostatError):
    """Another manager already controls this application."""


class _Held(ABC):
    """A lock that is taken and released by hand, or held for the length of a `with` block."""

    @abstractmethod
    def take(self) -> None: ...

    @abstractmethod
    def release(self) -> None: ...

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Lease(_Held):
    """A lock on a file. The operating system releases it when the process ends, however it ends."""

    def __init__(self, path: Path, *, fix: str = "stop it first, or choose another directory") -> None:
        self._path, self._fix = path, fix
        self._file: int | None = None

    def take(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(file)
            os.close(file)
            raise LeaseTakenError(
                f"another manager already controls this application{holder}",
                where=str(self._path.parent),
                fix=self._fix,
            ) from error
        os.ftruncate(file, 0)
        os.write(file, json.dumps({"process": os.getpid(), "since_s": time.time()}).encode())
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Claim(_Held):
    """A lock on one Spark application within its driver process, whatever directory the manager uses."""

    _claimed: ClassVar[set[str]] = set()
    _one_at_a_time: ClassVar[Lock] = Lock()

    def __init__(self, application: str) -> None:
        self._application = application
        self._ours = False

    def take(self) -> None:
        with self._one_at_a_time:
            if self._application in self._claimed:
                raise LeaseTakenError(
                    "another manager already controls this application in this process",
                    where=self._application,
                    fix="call hs.attach only once, and not in an application that `homeostat run` started",
                )
            self._claimed.add(self._application)
            self._ours = True

    def release(self) -> None:
        with self._one_at_a_time:
            if self._ours:
                self._claimed.discard(self._application)
                self._ours = False


def _holder(file: int) -> str:
    try:
        return f" (process {json.loads(os.pread(file, 1000, 0))['process']})"
    except (ValueError, KeyError, OSError):
        return ""
