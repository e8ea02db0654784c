"""Who works on a checkpoint: a query that runs on it, or a tool that changes it. One at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from homeostat.checkpoint.files import is_local, local_path
from homeostat.core.errors import HomeostatError


class HeldError(HomeostatError):
    """Somebody else works on the checkpoint."""


class Hold:
    """A lock beside the checkpoint, given back when its process ends, however it ends; the file stays.

    Only queries that Homeostat started take it: of another one nobody can tell whether it runs. There is none for a
    checkpoint that is not on this machine's own file system.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self._file: int | None = None

    def take(self) -> None:
        """Safe to repeat."""
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
                f"process {holder or 'of another user'} works on this checkpoint: a query that runs, or another tool",
                where=self.location,
                fix="stop it first",
            ) from error
        os.ftruncate(file, 0)
        os.write(file, str(os.getpid()).encode())
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextmanager
def held(location: str) -> Iterator[None]:
    hold = Hold(location)
    hold.take()
    try:
        yield
    finally:
        hold.release()


def _path(location: str) -> Path:
    return local_path(f"{location.rstrip('/')}.lock")
