"""Savepoints: consistent copies of one committed batch of a checkpoint, made of links where that is possible.

A link is as good as a copy, for Spark never changes a file in place: it writes beside and renames.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from homeostat.checkpoint.damage import require_sound
from homeostat.checkpoint.files import Entry, Made
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.state_reader import Track, unseen
from homeostat.checkpoint.store_files import chain, store_file, version_after
from homeostat.core.errors import ConfigError, HomeostatError

FORMAT = 1
MANIFEST = "manifest.json"
CONTENT = "checkpoint"
_NAME = re.compile(r"\w[\w.-]*")
_NUMBER = re.compile(r"\.?(\d+)\b")
_LARGE_FILES = ("/SSTs/", "/logs/")


class SavepointError(HomeostatError):
    """A savepoint that cannot be made, or must not be put back."""


@dataclass(frozen=True, slots=True)
class SavedFile:
    name: str
    size: int
    sha256: str
    made: Made


@dataclass(frozen=True, slots=True)
class Savepoint:
    """What the manifest says. It is written last: without it there is no savepoint."""

    name: str
    batch: int
    made_s: float
    query_id: str | None
    partitions: int | None
    settings: Mapping[str, str]
    files: tuple[SavedFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def copied_bytes(self) -> int:
        """What it takes on disk; the rest are links."""
        return sum(file.size for file in self.files if file.made == "copied")

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Savepoint:
        files = tuple(SavedFile(**file) for file in value["files"])
        return cls(**{key: value[key] for key in cls.__dataclass_fields__ if key != "files"}, files=files)


def make(checkpoint: Checkpoint, name: str = "", *, track: Track = unseen) -> Savepoint:
    """Of the latest committed batch; the query may run meanwhile."""
    if name and not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r} cannot name a savepoint", where="NAME", fix="use letters, digits, '.' and '-'")
    batch = checkpoint.batches().finished
    if batch < 0:
        raise SavepointError("no batch has been committed yet", where=checkpoint.location, fix="run the query first")
    require_sound(checkpoint, batch)
    name = name or free_name(checkpoint, f"batch-{batch}")
    if exists(checkpoint, name):
        raise ConfigError(
            f"there is a savepoint {name!r} already", where=checkpoint.location, fix="choose another name"
        )
    checkpoint.files.delete(place(checkpoint, name))  # begun once and never finished
    try:
        return _saved(checkpoint, name, batch, track)
    except Exception:
        checkpoint.files.delete(place(checkpoint, name))
        raise


def _let_be(error: SavepointError) -> None:
    """Nobody wants to know."""


def listed(checkpoint: Checkpoint, damaged: Callable[[SavepointError], None] = _let_be) -> list[Savepoint]:
    """Those that are whole, oldest first; what is wrong with the others is told to `damaged`."""
    found = []
    for entry in checkpoint.files.entries(_root(checkpoint)):
        if entry.directory and exists(checkpoint, entry.name):
            try:
                found.append(read(checkpoint, entry.name))
            except SavepointError as error:
                damaged(error)
    return sorted(found, key=lambda savepoint: savepoint.made_s)


def read(checkpoint: Checkpoint, name: str) -> Savepoint:
    if not exists(checkpoint, name):
        known = [entry.name for entry in checkpoint.files.entries(_root(checkpoint)) if exists(checkpoint, entry.name)]
        raise ConfigError(
            f"there is no savepoint {name!r}",
            where=checkpoint.location,
            fix=f"one of {', '.join(known)}" if known else "there is none: make one with homeostat state savepoint",
        )
    path = f"{place(checkpoint, name)}/{MANIFEST}"
    try:
        value = json.loads(checkpoint.files.read(path))
        if value["format"] != FORMAT:
            raise SavepointError(
                f"a manifest of format {value['format']} cannot be read here", where=path, fix=f"format {FORMAT} can"
            )
        return Savepoint.from_json(value)
    except (ValueError, KeyError, TypeError) as error:
        raise SavepointError("the manifest is damaged", where=path, fix="use another savepoint") from error


def verify(checkpoint: Checkpoint, savepoint: Savepoint, track: Track = unseen) -> None:
    """Refuse a savepoint that is not what its manifest says, naming the first file that is not."""
    root = content(checkpoint, savepoint.name)
    for file in track(savepoint.files, "checking the savepoint"):
        path = f"{root}/{file.name}"
        if not checkpoint.files.exists(path):
            raise _damaged(path, "is missing")
        if checkpoint.files.checksum(path) != file.sha256:
            raise _damaged(path, "does not hold what was saved")


def delete(checkpoint: Checkpoint, name: str) -> None:
    """The manifest first: what is left of a deletion that was cut short is no savepoint."""
    checkpoint.files.delete(f"{place(checkpoint, name)}/{MANIFEST}")
    checkpoint.files.delete(place(checkpoint, name))


def free_name(checkpoint: Checkpoint, stem: str) -> str:
    name, number = stem, 1
    while exists(checkpoint, name):
        number += 1
        name = f"{stem}-{number}"
    return name


def place(checkpoint: Checkpoint, name: str) -> str:
    return f"{_root(checkpoint)}/{name}"


def content(checkpoint: Checkpoint, name: str) -> str:
    """Where the saved files are: a checkpoint of its own, that every tool can read."""
    return f"{place(checkpoint, name)}/{CONTENT}"


def belongs(name: str, batch: int) -> bool:
    """Whether a file is part of the checkpoint as it was after this batch.

    >>> [name for name in ("offsets/7", "commits/.8.crc", "state/0/1/8.zip", "state/0/1/9.zip") if belongs(name, 7)]
    ['offsets/7', 'state/0/1/8.zip']
    """
    folder, _, file = name.rpartition("/")
    if file.endswith(".tmp"):
        return False
    number = _NUMBER.match(file)
    if number is None:
        return True
    if folder in ("offsets", "commits") or (folder.startswith("state/") and folder.endswith("/_metadata/v2")):
        return int(number[1]) <= batch
    plain = file.removeprefix(".").removesuffix(".crc")
    version = store_file(Entry(plain, 0, False, 0.0)) if folder.startswith("state/") else None
    return version is None or version.version <= version_after(batch)


def _saved(checkpoint: Checkpoint, name: str, batch: int, track: Track) -> Savepoint:
    files = tuple(_same_files(checkpoint, batch, content(checkpoint, name), track))
    _refuse_gaps(checkpoint, name, batch)
    settings, partitions = checkpoint.settings(batch), checkpoint.state_partitions(batch)
    savepoint = Savepoint(name, batch, time.time(), checkpoint.query_id(), partitions, settings, files)
    manifest = json.dumps(savepoint.as_json(), indent=1).encode()
    checkpoint.files.write(f"{place(checkpoint, name)}/{MANIFEST}", manifest)
    return savepoint


def _same_files(checkpoint: Checkpoint, batch: int, target: str, track: Track) -> Iterator[SavedFile]:
    """The large files of snapshots come last: a snapshot that is written meanwhile then has all of its own."""
    files = checkpoint.files
    for large in (False, True):
        found = [entry for entry in files.walk(checkpoint.location) if _is_large(entry.name) == large]
        wanted = [entry for entry in found if belongs(entry.name, batch)]
        for entry in track(wanted, "saving"):
            path = f"{target}/{entry.name}"
            try:
                made = files.same(checkpoint.path(entry.name), path)
            except FileNotFoundError:  # too old to be kept: the running query removed it meanwhile
                continue
            yield SavedFile(entry.name, entry.size, files.checksum(path), made)


def _is_large(name: str) -> bool:
    return any(part in name for part in _LARGE_FILES)


def _refuse_gaps(checkpoint: Checkpoint, name: str, batch: int) -> None:
    """A query that runs keeps many batches, but not for ever."""
    saved = Checkpoint(content(checkpoint, name), checkpoint.files)
    operators = [saved.operator(id, batch) for id in saved.operators()]
    chains = (
        chain(saved.store_files(operator.id, partition, store), version_after(batch))
        for operator in operators
        for partition in range(operator.partitions)
        for store in operator.stores
    )
    if batch not in saved.committed() or batch not in saved.begun() or any(each.missing for each in chains):
        raise SavepointError(
            f"the query removed files of batch {batch} while it was saved", where=checkpoint.location, fix="try again"
        )


def _damaged(path: str, what: str) -> SavepointError:
    return SavepointError(f"this file of the savepoint {what}", where=path, fix="use another savepoint")


def has_any(checkpoint: Checkpoint) -> bool:
    return any(exists(checkpoint, entry.name) for entry in checkpoint.files.entries(_root(checkpoint)))


def exists(checkpoint: Checkpoint, name: str) -> bool:
    return checkpoint.files.exists(f"{place(checkpoint, name)}/{MANIFEST}")


def _root(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.savepoints"
