"""The files of one state store: the version of each, and the files that make up a version.

A batch writes the version one above its own number: batch 0 writes version 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from homeostat.checkpoint.files import Entry

DEFAULT_STORE = "default"
_KINDS: Mapping[str, Literal["snapshot", "changes"]] = {
    "snapshot": "snapshot",
    "zip": "snapshot",
    "delta": "changes",
    "changelog": "changes",
}
_NAME = re.compile(r"(\d+)(?:_([^.]+))?\.(snapshot|zip|delta|changelog)")


@dataclass(frozen=True, slots=True)
class StoreFile:
    """A snapshot of a store, or the changes of one batch."""

    name: str
    version: int
    kind: Literal["snapshot", "changes"]
    size: int
    unique_id: str = ""

    @property
    def ending(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Chain:
    """The files of a version: the nearest snapshot, if there is one, then the changes up to the version."""

    snapshot: StoreFile | None
    changes: tuple[StoreFile, ...]
    missing: tuple[int, ...]

    @property
    def files(self) -> tuple[StoreFile, ...]:
        return (*([self.snapshot] if self.snapshot else []), *self.changes)


def version_after(batch: int) -> int:
    return batch + 1


def store_path(operator: int, partition: int, store: str = DEFAULT_STORE) -> str:
    """
    >>> store_path(0, 3), store_path(0, 3, "left-keyToNumValues")
    ('state/0/3', 'state/0/3/left-keyToNumValues')
    """
    return f"state/{operator}/{partition}" + ("" if store == DEFAULT_STORE else f"/{store}")


def store_file(entry: Entry) -> StoreFile | None:
    """
    >>> store_file(Entry("7_a-b.changelog", 46, False, 0.0))
    StoreFile(name='7_a-b.changelog', version=7, kind='changes', size=46, unique_id='a-b')
    """
    match = _NAME.fullmatch(entry.name)
    if not match:
        return None
    version, unique_id, ending = match.groups()
    return StoreFile(entry.name, int(version), _KINDS[ending], entry.size, unique_id or "")


def chain(files: Sequence[StoreFile], version: int, ids: Mapping[int, str] | None = None) -> Chain:
    """Return the files that make up a version. `ids` selects one of several files of the same version."""
    id_by_version = ids or {}
    usable = [file for file in files if file.version <= version and _has_right_id(file, id_by_version)]
    snapshots = [file for file in usable if file.kind == "snapshot"]
    snapshot = max(snapshots, key=lambda file: file.version, default=None)
    first = snapshot.version + 1 if snapshot else 1
    by_version = {file.version: file for file in usable if file.kind == "changes"}
    needed_versions = range(first, version + 1)
    return Chain(
        snapshot,
        tuple(by_version[number] for number in needed_versions if number in by_version),
        tuple(number for number in needed_versions if number not in by_version),
    )


def _has_right_id(file: StoreFile, ids: Mapping[int, str]) -> bool:
    return file.unique_id == ids.get(file.version, file.unique_id)
