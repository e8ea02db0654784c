"""The log of a file source in the checkpoint: the files it has read, in numbered entries without gaps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

from homeostat.checkpoint.metadata import Checkpoint

_COMPACT = ".compact"  # such an entry contains all entries before it


def missing_entries(checkpoint: Checkpoint) -> Iterator[str]:
    """Yield the missing entries that the latest batch depends on.

    If a query uses a source twice, the offsets do not show which directory they belong to, so nothing is reported.
    """
    last_entries = _last_entries(checkpoint)
    if len(checkpoint.files.entries(checkpoint.path("sources"))) != len(last_entries):
        return
    for source, last in enumerate(last_entries):
        if last is None:
            continue
        names = {entry.name for entry in checkpoint.files.entries(checkpoint.path("sources", source))}
        whole = [int(name.removesuffix(_COMPACT)) for name in names if name[:1].isdigit() and name.endswith(_COMPACT)]
        missing = {str(number) for number in range(max(whole, default=-1) + 1, last + 1)} - names
        yield from (f"sources/{source}/{number}" for number in sorted(missing, key=int))


def _last_entries(checkpoint: Checkpoint) -> list[int | None]:
    """The last entry of each offset of the latest batch; None for other kinds of sources."""
    with suppress(FileNotFoundError, UnicodeDecodeError):
        lines = checkpoint.files.read(checkpoint.path("offsets", checkpoint.batches().begun)).decode().splitlines()
        if lines[:1] == ["v1"]:
            return [_entry(offset) for offset in lines[2:]]
    return []


def _entry(offset: str) -> int | None:
    """
    >>> _entry('{"logOffset":7}'), _entry('{"topic":{"0":7}}'), _entry("-")
    (7, None, None)
    """
    with suppress(ValueError, TypeError, KeyError):
        return int(json.loads(offset)["logOffset"])
    return None
