"""Finds the damage in a checkpoint from its files alone. It neither starts Spark nor writes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from homeostat.checkpoint.file_formats import (
    END_BYTES,
    checksum_problem,
    empty_problem,
    end_problem,
    json_problem,
    log_problem,
    shared_files,
    snapshot_problem,
    stream_problem,
)
from homeostat.checkpoint.file_source_log import missing_entries
from homeostat.checkpoint.files import Entry
from homeostat.checkpoint.metadata import CODEC, Checkpoint
from homeostat.checkpoint.store_files import Chain, StoreFile, chain, store_file, store_path, version_after
from homeostat.core.errors import HomeostatError

# The newest versions of these files that Spark 4.3 writes.
NEWEST_OFFSETS, NEWEST_COMMITS, NEWEST_OPERATOR = 2, 3, 2
# The most checks. A check that finds damage is repeated if the query started or committed a batch meanwhile. A choice.
LOOKS = 5
# Larger files are judged by their ends alone: reading them whole takes too long. A choice.
CHECKED_BYTES = 8 << 20
_RECOVER = "restore the file from a backup, or restore a savepoint with `homeostat state restore`"
_NO_SCHEMA = "neither Spark nor its state reader can tell the types of the state"
_NO_OPERATOR = "Spark's state reader cannot tell which operator this is"


@dataclass(frozen=True, slots=True)
class Damage:
    """One damage: where it is, what is wrong, the consequence and how to fix it."""

    path: str
    what: str
    follows: str
    fix: str


class DamagedError(HomeostatError):
    """The checkpoint is damaged. The message describes the first damage."""

    exit_code = 3

    def __init__(self, location: str, damage: Sequence[Damage]) -> None:
        self.damage = tuple(damage)
        first = damage[0]
        more = f"; `homeostat state ls` lists {len(damage) - 1} more" if len(damage) > 1 else ""
        super().__init__(f"{first.path} {first.what}: {first.follows}{more}", where=location, fix=first.fix)


def require_sound(checkpoint: Checkpoint, batch: int | None = None) -> None:
    if damage := find_damage(checkpoint, batch):
        raise DamagedError(checkpoint.location, damage)


def find_damage(checkpoint: Checkpoint, batch: int | None = None) -> list[Damage]:
    """Return all damage of the logs, and of the state as of this batch or of the latest committed one."""
    damage: list[Damage] = []
    for _ in range(LOOKS):
        before = checkpoint.batches()
        damage = _look(checkpoint, batch)
        if not damage or checkpoint.batches() == before:
            break
    return damage


def _look(checkpoint: Checkpoint, batch: int | None) -> list[Damage]:
    damage = [*_metadata(checkpoint), *_logs(checkpoint), *_order(checkpoint), *_sources(checkpoint)]
    committed_batches = checkpoint.committed_batches()
    batch = max(committed_batches, default=-1) if batch is None else batch
    damage += _foreign_directories(checkpoint)
    damaged_paths = {each.path for each in damage}
    if batch in committed_batches and f"offsets/{batch}" not in damaged_paths:
        readable = [each for each in committed_batches if each <= batch and f"commits/{each}" not in damaged_paths]
        for operator in checkpoint.operators():
            damage += _operator(checkpoint, operator, batch, readable)
    return damage


def _metadata(checkpoint: Checkpoint) -> Iterator[Damage]:
    if not checkpoint.files.exists(checkpoint.path("metadata")):
        follows = "Spark will start the query as a new one with another id"
        yield Damage("metadata", "is missing", follows, _RECOVER)
    else:
        yield from _check_file(checkpoint, "metadata", json_problem, "Spark cannot tell which query this is")


def _logs(checkpoint: Checkpoint) -> Iterator[Damage]:
    for log, newest, lines in (("offsets", NEWEST_OFFSETS, 2), ("commits", NEWEST_COMMITS, 1)):
        entries = checkpoint.files.entries(checkpoint.path(log))
        problem = partial(log_problem, newest=newest, lines_needed=lines)
        for entry in entries:
            if entry.name.isdigit() and not entry.directory:
                follows = f"Spark cannot read its log of batch {entry.name}"
                yield from _check_file(checkpoint, f"{log}/{entry.name}", problem, follows)
            elif not _is_hidden(entry.name):
                yield _foreign(f"{log}/{entry.name}")


def _order(checkpoint: Checkpoint) -> Iterator[Damage]:
    """Every batch before the latest must have been started and committed. After some time, Spark removes the oldest.

    A query without state may skip batches, but then both logs skip the same ones.
    """
    begun_batches, committed_batches = checkpoint.begun_batches(), checkpoint.committed_batches()
    oldest = max(min(begun_batches, default=0), min(committed_batches, default=0))
    latest = max(begun_batches, default=-1)
    leaps = set() if checkpoint.has_state() else set(range(latest)) - {*begun_batches, *committed_batches}
    for batch in range(oldest, max(latest, *committed_batches, -1) + 1):
        if batch in leaps:
            continue
        if batch not in begun_batches:
            follows = f"Spark cannot tell what batch {batch} read, and later batches depend on it"
            yield Damage(f"offsets/{batch}", "is missing", follows, _RECOVER)
        if batch not in committed_batches and batch != latest and not checkpoint.lacks_commits():
            follows = f"a later batch was started, so batch {batch} was committed, but its commit is lost"
            yield Damage(f"commits/{batch}", "is missing", follows, _RECOVER)


def _sources(checkpoint: Checkpoint) -> Iterator[Damage]:
    """Each source has its own file format, so only empty, changed and missing files are found."""
    follows = "the source cannot tell what it has already read"
    for entry in checkpoint.files.walk(checkpoint.path("sources")):
        if not _is_hidden(entry.name.rpartition("/")[2]) and entry.size <= CHECKED_BYTES:
            yield from _check_file(checkpoint, f"sources/{entry.name}", empty_problem, follows)
    for path in missing_entries(checkpoint):
        yield Damage(path, "is missing", follows, _RECOVER)


def _foreign_directories(checkpoint: Checkpoint) -> Iterator[Damage]:
    """`state` contains numbered operators, and each of them numbered partitions."""
    for entry in checkpoint.files.entries(checkpoint.path("state")):
        if not entry.name.isdigit():
            if not _is_hidden(entry.name):
                yield _foreign(f"state/{entry.name}")
            continue
        for inner in checkpoint.files.entries(checkpoint.path("state", entry.name)):
            if not (inner.name.isdigit() and inner.directory) and not _is_hidden(inner.name):
                yield _foreign(f"state/{entry.name}/{inner.name}")


def _operator(checkpoint: Checkpoint, id: int, batch: int, commits: Sequence[int]) -> Iterator[Damage]:
    damages = list(_operator_metadata(checkpoint, id))
    yield from damages
    if damages:
        return
    operator = checkpoint.operator(id, batch)
    yield from _schemas(checkpoint, id, operator.stores)
    for path in operator.schema_files:
        if not checkpoint.files.exists(path):
            what = f"refers to the schema file {path}, which is missing"
            fix = "restore the file from a backup; if the checkpoint was moved, move it back to its original place"
            yield Damage(f"state/{id}/_metadata", what, _NO_SCHEMA, fix)
    ids = _unique_ids(checkpoint, id, commits)
    codec = checkpoint.settings(batch).get(CODEC, "lz4")
    begun = checkpoint.batches().begun
    for partition in range(operator.partitions):
        for number, store in enumerate(operator.stores):
            place = _Place(checkpoint, store_path(id, partition, store), batch, begun, codec)
            yield from _store(place, _ids_of(ids, partition, number))


def _schemas(checkpoint: Checkpoint, id: int, stores: Sequence[str]) -> Iterator[Damage]:
    """The schemas that the first partition keeps. A query also runs without them."""
    for store in stores:
        path = f"{store_path(id, 0, store)}/_metadata/schema"
        if checkpoint.files.exists(checkpoint.path(path)):
            yield from _check_file(checkpoint, path, empty_problem, _NO_SCHEMA)


def _operator_metadata(checkpoint: Checkpoint, id: int) -> Iterator[Damage]:
    folder = f"state/{id}/_metadata"
    names = [f"{folder}/v2/{entry.name}" for entry in _plain_files(checkpoint, f"{folder}/v2")]
    names = names or [f"{folder}/{entry.name}" for entry in _plain_files(checkpoint, folder)]
    if not names and not checkpoint.lacks_operator_metadata():
        yield Damage(folder, "is empty", _NO_OPERATOR, _RECOVER)
    problem = partial(log_problem, newest=NEWEST_OPERATOR, lines_needed=2)
    for name in names:
        yield from _check_file(checkpoint, name, problem, _NO_OPERATOR)


@dataclass(frozen=True, slots=True)
class _Place:
    """The directory of a state store, with the batches and the codec that its files must match."""

    checkpoint: Checkpoint
    path: str
    batch: int
    begun: int
    codec: str

    @property
    def follows(self) -> str:
        return f"Spark cannot load the state of batch {self.batch}, so the query will not start"


def _store(place: _Place, ids: Mapping[int, str]) -> Iterator[Damage]:
    files = []
    for entry in _plain_files(place.checkpoint, place.path):
        if file := store_file(entry):
            files.append(file)
        else:
            yield _foreign(f"{place.path}/{entry.name}")
    file_chain = chain(files, version_after(place.batch), ids)
    yield from _gaps(place, files, file_chain)
    yield from _ahead(place, files)
    for file in file_chain.files:
        yield from _changes(place, file) if file.ending != "zip" else _snapshot(place, file)


def _gaps(place: _Place, files: Sequence[StoreFile], file_chain: Chain) -> Iterator[Damage]:
    newest, needed_version = max((file.version for file in files), default=0), version_after(place.batch)
    if not files:
        yield Damage(place.path, "contains no state", place.follows, _RECOVER)
    elif newest < needed_version:
        what = f"is behind: its newest version is {newest}, but batch {place.batch} wrote version {needed_version}"
        yield Damage(place.path, what, place.follows, _RECOVER)
    ending = "delta" if any(file.ending in ("delta", "snapshot") for file in files) else "changelog"
    for version in file_chain.missing:
        if version <= newest:
            what = f"is missing, and there is no snapshot of versions {version} to {needed_version} to replace it"
            yield Damage(f"{place.path}/{version}.{ending}", what, place.follows, _RECOVER)


def _ahead(place: _Place, files: Sequence[StoreFile]) -> Iterator[Damage]:
    """A batch that was started may already have written its state. State of a later batch cannot exist."""
    newest = max(files, key=lambda file: file.version, default=None)
    if newest and newest.version > version_after(place.begun):
        what = f"is ahead: no batch after {place.begun} was started"
        follows = "the logs have lost their latest batches, or the file belongs to another checkpoint"
        yield Damage(f"{place.path}/{newest.name}", what, follows, _RECOVER)


def _changes(place: _Place, file: StoreFile) -> Iterator[Damage]:
    path = f"{place.path}/{file.name}"
    if file.size <= CHECKED_BYTES:
        yield from _check_file(place.checkpoint, path, partial(stream_problem, codec=place.codec), place.follows)
    elif what := end_problem(place.checkpoint.files.tail(place.checkpoint.path(path), END_BYTES), place.codec):
        yield Damage(path, what, place.follows, _RECOVER)


def _snapshot(place: _Place, file: StoreFile) -> Iterator[Damage]:
    path = f"{place.path}/{file.name}"
    damages = list(_check_file(place.checkpoint, path, snapshot_problem, place.follows))
    yield from damages
    if damages:
        return
    sizes = {
        f"{folder}/{entry.name}": entry.size
        for folder in ("SSTs", "logs")
        for entry in _plain_files(place.checkpoint, f"{place.path}/{folder}")
    }
    for shared_file in shared_files(place.checkpoint.files.read(place.checkpoint.path(path))):
        size = sizes.get(shared_file.path)
        if size != shared_file.size:
            what = "is missing" if size is None else f"has {size} bytes instead of {shared_file.size}"
            yield Damage(
                f"{place.path}/{shared_file.path}", f"{what}, but {file.name} needs it", place.follows, _RECOVER
            )


def _check_file(
    checkpoint: Checkpoint, path: str, problem: Callable[[bytes], str | None], follows: str
) -> Iterator[Damage]:
    """Check the format of a file, then its Hadoop checksums if there are any."""
    try:
        data = checkpoint.files.read(checkpoint.path(path))
    except FileNotFoundError:  # the running query removed it meanwhile
        return
    except OSError as error:
        yield Damage(path, f"cannot be read: {error}", follows, _RECOVER)
        return
    what = problem(data)
    if what is None and len(data) <= CHECKED_BYTES:
        folder, _, name = path.rpartition("/")
        sums = checkpoint.path(*filter(None, (folder, f".{name}.crc")))
        what = checksum_problem(data, checkpoint.files.read(sums)) if checkpoint.files.exists(sums) else None
    if what:
        yield Damage(path, what, follows, _RECOVER)


def _unique_ids(checkpoint: Checkpoint, operator: int, commits: Sequence[int]) -> Mapping[int, list[list[str]]]:
    """The ids in the names of state files by version, from the log of commits."""
    ids_by_version = {}
    for batch in commits:
        if ids := checkpoint.unique_ids(batch).get(operator):
            ids_by_version[version_after(batch)] = ids
    return ids_by_version


def _ids_of(ids: Mapping[int, list[list[str]]], partition: int, store: int) -> dict[int, str]:
    return {
        version: by_partition[partition][store]
        for version, by_partition in ids.items()
        if partition < len(by_partition) and store < len(by_partition[partition])
    }


def _plain_files(checkpoint: Checkpoint, folder: str) -> list[Entry]:
    entries = checkpoint.files.entries(checkpoint.path(folder))
    return [entry for entry in entries if not entry.directory and not _is_hidden(entry.name)]


def _foreign(path: str) -> Damage:
    follows = "a checkpoint has no file of this name: Spark may fail on it, or it may have replaced something"
    return Damage(path, "does not belong to a checkpoint", follows, "move the file elsewhere")


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) or name.endswith(".crc")
