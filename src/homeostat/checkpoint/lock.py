"""A lock on a checkpoint, which one process holds at a time: its query, or a tool that changes the checkpoint."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from homeostat.checkpoint.files import is_local, local_path, real_location
from homeostat.core.errors import HomeostatError


class HeldError(HomeostatError):
    """Another process uses the checkpoint."""


class Hold:
    """A lock file beside the checkpoint. The operating system releases the lock when its process ends. The file
    remains.

    Only queries that Homeostat started take the lock, so another query may run although the lock is free. A checkpoint
    that is not on a local file system has no lock.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self._file: int | None = None

    def take(self) -> None:
        """Take the lock. Taking it again does nothing. Raise HeldError if another process has it."""
        if self._file is not None or not self.location or not is_local(self.location):
            return
        path = _path(self.location)
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(file, 100, 0).decode(errors="replace").strip()
            os.close(file)
            raise HeldError(
                f"this checkpoint is in use by process {holder or '(unknown)'}: its running query or another tool",
                where=self.location,
                fix="stop that process, then try again",
            ) from error
        os.ftruncate(file, 0)
        os.write(file, str(os.getpid()).encode())
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextmanager
def hold_lock(location: str) -> Iterator[None]:
    hold = Hold(location)
    hold.take()
    try:
        yield
    finally:
        hold.release()


def _path(location: str) -> Path:
    """Return the path of the lock file. It is the same for every link to the checkpoint and every spelling."""
    return local_path(f"{real_location(location)}.lock")
