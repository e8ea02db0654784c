"""Savepoints: consistent copies of one committed batch of a checkpoint, made of links where possible.

A link is as good as a copy, because Spark never changes a file in place: it writes a new file and renames it.
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
from homeostat.checkpoint.state_reader import Track, no_tracking
from homeostat.checkpoint.store_files import chain, store_file, version_after
from homeostat.core.errors import ConfigError, HomeostatError

FORMAT = 1
MANIFEST = "manifest.json"
CONTENT = "checkpoint"
_NAME = re.compile(r"\w[\w.-]*")
_NUMBER = re.compile(r"\.?(\d+)\b")
_LARGE_FILES = ("/SSTs/", "/logs/")


class SavepointError(HomeostatError):
    """A savepoint cannot be made, read or restored."""


class NewerSavepointError(SavepointError):
    """A newer version of Homeostat made the savepoint."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class SavedFile:
    name: str
    size: int
    sha256: str
    made: Made


@dataclass(frozen=True, slots=True)
class Savepoint:
    """The content of the manifest. It is written last: a directory without it is not a savepoint."""

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
        """The extra space on disk; the other files are links."""
        return sum(file.size for file in self.files if file.made == "copied")

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Savepoint:
        files = tuple(SavedFile(**file) for file in value["files"])
        outside = [file.name for file in files if not _is_inside(file.name)]
        if outside:
            raise ValueError(f"{outside[0]!r} is not the name of a file in a checkpoint")
        return cls(**{key: value[key] for key in cls.__dataclass_fields__ if key != "files"}, files=files)


def make(checkpoint: Checkpoint, name: str = "", *, track: Track = no_tracking) -> Savepoint:
    """Make a savepoint of the latest committed batch. The query may run meanwhile."""
    if name and not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a valid savepoint name", where="NAME", fix="use letters, digits, '.', '_' and '-'"
        )
    batch = checkpoint.batches().finished
    if batch < 0:
        raise SavepointError(
            "no batch has been committed yet", where=checkpoint.location, fix="let the query finish its first batch"
        )
    require_sound(checkpoint, batch)
    name = name or free_name(checkpoint, f"batch-{batch}")
    if exists(checkpoint, name):
        raise ConfigError(f"a savepoint {name!r} already exists", where=checkpoint.location, fix="choose another name")
    checkpoint.files.delete(place(checkpoint, name))  # an unfinished attempt
    try:
        return _save(checkpoint, name, batch, track)
    except Exception:
        checkpoint.files.delete(place(checkpoint, name))
        raise


def _ignore(error: SavepointError) -> None:
    """Ignore a damaged savepoint."""


def list_savepoints(checkpoint: Checkpoint, on_damage: Callable[[SavepointError], None] = _ignore) -> list[Savepoint]:
    """Return the complete savepoints, oldest first. `on_damage` gets the error of each one that cannot be read."""
    savepoints = []
    for entry in checkpoint.files.entries(root(checkpoint.location)):
        if entry.directory and exists(checkpoint, entry.name):
            try:
                savepoints.append(read(checkpoint, entry.name))
            except SavepointError as error:
                on_damage(error)
    return sorted(savepoints, key=lambda savepoint: savepoint.made_s)


def read(checkpoint: Checkpoint, name: str) -> Savepoint:
    if not exists(checkpoint, name):
        names = [
            entry.name
            for entry in checkpoint.files.entries(root(checkpoint.location))
            if exists(checkpoint, entry.name)
        ]
        raise ConfigError(
            f"there is no savepoint {name!r}",
            where=checkpoint.location,
            fix=f"choose one of {', '.join(names)}" if names else "make one with `homeostat state savepoint`",
        )
    path = f"{place(checkpoint, name)}/{MANIFEST}"
    try:
        value = json.loads(checkpoint.files.read(path))
        if isinstance(value["format"], int) and value["format"] > FORMAT:
            raise NewerSavepointError(
                f"a newer Homeostat made this savepoint (format {value['format']}; this one reads {FORMAT})",
                where=path,
                fix="upgrade homeostat, or use another savepoint",
            )
        if value["format"] != FORMAT:
            raise ValueError(f"format {value['format']!r}")
        savepoint = Savepoint.from_json(value)
        if savepoint.name != name:
            raise ValueError(f"the savepoint is called {savepoint.name!r}")
        return savepoint
    except (ValueError, KeyError, TypeError) as error:
        raise SavepointError(
            f"the manifest of this savepoint is damaged: {error}", where=path, fix="use another savepoint"
        ) from error


def verify(checkpoint: Checkpoint, savepoint: Savepoint, track: Track = no_tracking) -> None:
    """Raise SavepointError if a file of the savepoint does not match its manifest."""
    content_root = content(checkpoint, savepoint.name)
    for file in track(savepoint.files, "checking the savepoint"):
        path = f"{content_root}/{file.name}"
        if not checkpoint.files.exists(path):
            raise _damage_error(path, "is missing")
        if checkpoint.files.checksum(path) != file.sha256:
            raise _damage_error(path, "has changed since it was saved")


def delete(checkpoint: Checkpoint, name: str) -> None:
    """Delete a savepoint, its manifest first: the rest of an interrupted deletion is then not a savepoint."""
    checkpoint.files.delete(f"{place(checkpoint, name)}/{MANIFEST}")
    checkpoint.files.delete(place(checkpoint, name))


def free_name(checkpoint: Checkpoint, stem: str) -> str:
    name, number = stem, 1
    while exists(checkpoint, name):
        number += 1
        name = f"{stem}-{number}"
    return name


def place(checkpoint: Checkpoint, name: str) -> str:
    return f"{root(checkpoint.location)}/{name}"


def root(location: str) -> str:
    """The directory of the savepoints of the checkpoint at a location."""
    return f"{location}.savepoints"


def content(checkpoint: Checkpoint, name: str) -> str:
    """Return the directory of the saved files, which is a checkpoint that every tool can read."""
    return f"{place(checkpoint, name)}/{CONTENT}"


def belongs(name: str, batch: int) -> bool:
    """Return whether a file is part of the checkpoint as of this batch.

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


def _save(checkpoint: Checkpoint, name: str, batch: int, track: Track) -> Savepoint:
    files = tuple(_same_files(checkpoint, batch, content(checkpoint, name), track))
    _refuse_gaps(checkpoint, name, batch)
    settings, partitions = checkpoint.settings(batch), checkpoint.state_partitions(batch)
    savepoint = Savepoint(name, batch, time.time(), checkpoint.query_id(), partitions, settings, files)
    manifest = json.dumps(savepoint.as_json(), indent=1).encode()
    checkpoint.files.write(f"{place(checkpoint, name)}/{MANIFEST}", manifest)
    return savepoint


def _same_files(checkpoint: Checkpoint, batch: int, target: str, track: Track) -> Iterator[SavedFile]:
    """Save the large files of snapshots last, so that a snapshot written meanwhile has all its files."""
    files = checkpoint.files
    for large in (False, True):
        entries = [entry for entry in files.walk(checkpoint.location) if _is_large(entry.name) == large]
        needed_entries = [entry for entry in entries if belongs(entry.name, batch)]
        for entry in track(needed_entries, "saving"):
            path = f"{target}/{entry.name}"
            try:
                way = files.same(checkpoint.path(entry.name), path)
            except FileNotFoundError:  # an old file that the running query removed meanwhile
                continue
            yield SavedFile(entry.name, entry.size, files.checksum(path), way)


def _is_large(name: str) -> bool:
    return any(part in name for part in _LARGE_FILES)


def _refuse_gaps(checkpoint: Checkpoint, name: str, batch: int) -> None:
    """Raise SavepointError if needed files are missing. A running query may have removed them, as it removes the files
    of old batches."""
    saved_checkpoint = Checkpoint(content(checkpoint, name), checkpoint.files)
    operators = [saved_checkpoint.operator(id, batch) for id in saved_checkpoint.operators()]
    chains = (
        chain(saved_checkpoint.store_files(operator.id, partition, store), version_after(batch))
        for operator in operators
        for partition in range(operator.partitions)
        for store in operator.stores
    )
    if (
        batch not in saved_checkpoint.committed_batches()
        or batch not in saved_checkpoint.begun_batches()
        or any(each.missing for each in chains)
    ):
        raise SavepointError(
            f"the query removed files of batch {batch} while they were being saved",
            where=checkpoint.location,
            fix="try again",
        )


def _damage_error(path: str, what: str) -> SavepointError:
    return SavepointError(f"a file of the savepoint {what}", where=path, fix="use another savepoint")


def _is_inside(name: str) -> bool:
    """
    >>> [_is_inside(name) for name in ("offsets/7", "../other", "a/../../b", "/etc/passwd", "a//b", "")]
    [True, False, False, False, False, False]
    """
    return all(part not in ("", ".", "..") for part in name.split("/")) and "\0" not in name


def has_any(checkpoint: Checkpoint) -> bool:
    return any(exists(checkpoint, entry.name) for entry in checkpoint.files.entries(root(checkpoint.location)))


def exists(checkpoint: Checkpoint, name: str) -> bool:
    return bool(_NAME.fullmatch(name)) and checkpoint.files.exists(f"{place(checkpoint, name)}/{MANIFEST}")
