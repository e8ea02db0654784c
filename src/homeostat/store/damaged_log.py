"""Moves a damaged log out of the way, so that a new one can begin in its place."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from glob import escape
from pathlib import Path

# Damaged files that are kept: enough to look into what damages them, and a bound on the disk. A choice.
MOST_DAMAGED_FILES = 3
_BESIDE_THE_FILE = ("", "-wal", "-shm")


def set_aside(log: Path) -> Path:
    """Where the damaged log is now: beside the new one. Only the newest damaged files stay there."""
    numbers = _damaged_files(log)
    aside = _damaged_file(log, max(numbers, default=0) + 1)
    _each_file(log, lambda file, suffix: file.rename(aside.with_name(aside.name + suffix)))
    for number in numbers[: len(numbers) + 1 - MOST_DAMAGED_FILES]:
        _each_file(_damaged_file(log, number), lambda file, suffix: file.unlink())
    return aside


def _damaged_files(log: Path) -> list[int]:
    """Their numbers, the oldest first."""
    endings = (file.name.rpartition("-")[2] for file in log.parent.glob(f"{escape(log.name)}.damaged-*"))
    return sorted({int(ending) for ending in endings if ending.isdecimal()})


def _damaged_file(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.damaged-{number}")


def _each_file(log: Path, work: Callable[[Path, str], object]) -> None:
    """The file of a log, and those that SQLite keeps beside it."""
    for suffix in _BESIDE_THE_FILE:
        with suppress(FileNotFoundError):
            work(log.with_name(log.name + suffix), suffix)
