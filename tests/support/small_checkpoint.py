"""A checkpoint of a query without state, written by hand, and files that fail after so many changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from homeostat.checkpoint.files import LocalFiles
from homeostat.checkpoint.metadata import Checkpoint

Content = dict[str, bytes]


def tree(path: Path) -> Content:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def write_batch(root: Path, batch: int, *, partitions: int = 3, commit: bool = True) -> None:
    """A batch of a query without state, as Spark writes it: files are renamed into place."""
    conf = {"spark.sql.shuffle.partitions": str(partitions)}
    lines = ["v1", json.dumps({"batchWatermarkMs": 0, "conf": conf}), json.dumps({"row": batch})]
    put(root / "offsets" / str(batch), "\n".join(lines))
    put(root / "sources" / "0" / str(batch), f"v1\nfiles of {batch}")
    if commit:
        put(root / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(text)
    fresh.rename(path)


def checkpoint(root: Path, files: LocalFiles | None = None) -> Checkpoint:
    return Checkpoint(str(root), files or LocalFiles())


class CrashError(Exception):
    """The machine goes down."""


class Mortal(LocalFiles):
    """Files that change so many times, and then no more."""

    def __init__(self, changes: int) -> None:
        self._changes_left = changes

    def _change(self) -> None:
        if self._changes_left == 0:
            raise CrashError
        self._changes_left -= 1

    def write(self, path: str, data: bytes) -> None:
        self._change()
        super().write(path, data)

    def same(self, source: str, target: str) -> Any:
        self._change()
        return super().same(source, target)

    def rename(self, source: str, target: str) -> None:
        self._change()
        super().rename(source, target)

    def delete(self, path: str) -> None:
        self._change()
        super().delete(path)


def crashes(do: Callable[[LocalFiles], object]) -> Iterator[None]:
    """After every number of changes that is not yet enough."""
    for changes in range(1000):
        try:
            do(Mortal(changes))
            return
        except CrashError:
            yield
    raise AssertionError("it never comes to an end")
