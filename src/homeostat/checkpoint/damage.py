"""What is broken in a checkpoint, read from its files alone: nothing is started and nothing is written."""

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

NEWEST_OFFSETS, NEWEST_COMMITS, NEWEST_OPERATOR = 2, 3, 2
LOOKS = 5  # a query that runs changes files while they are looked at
CHECKED_BYTES = 8 << 20  # larger files are judged by their ends alone
_BACK = "put the file back from a copy, or go back to a savepoint"


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is broken: where, what, what follows from it and what to do."""

    path: str
    what: str
    follows: str
    fix: str


class DamagedError(HomeostatError):
    """The checkpoint is broken; the first of what was found is told."""

    exit_code = 3

    def __init__(self, location: str, found: Sequence[Damage]) -> None:
        self.found = tuple(found)
        more = f"; {len(found) - 1} more, listed by `homeostat state ls`" if len(found) > 1 else ""
        super().__init__(f"{found[0].path} {found[0].what}: {found[0].follows}{more}", where=location, fix=found[0].fix)


def require_sound(checkpoint: Checkpoint, batch: int | None = None) -> None:
    if found := find_damage(checkpoint, batch):
        raise DamagedError(checkpoint.location, found)


def find_damage(checkpoint: Checkpoint, batch: int | None = None) -> list[Damage]:
    """All that is broken in the logs, and in the state as of this batch or the latest that was committed."""
    found: list[Damage] = []
    for _ in range(LOOKS):
        before = checkpoint.batches()
        found = _look(checkpoint, batch)
        if not found or checkpoint.batches() == before:
            break
    return found


def _look(checkpoint: Checkpoint, batch: int | None) -> list[Damage]:
    found = [*_metadata(checkpoint), *_logs(checkpoint), *_order(checkpoint), *_sources(checkpoint)]
    committed = checkpoint.committed()
    batch = max(committed, default=-1) if batch is None else batch
    found += _foreign_directories(checkpoint)
    broken = {damage.path for damage in found}
    if batch in committed and f"offsets/{batch}" not in broken:
        readable = [each for each in committed if each <= batch and f"commits/{each}" not in broken]
        for operator in checkpoint.operators():
            found += _operator(checkpoint, operator, batch, readable)
    return found


def _metadata(checkpoint: Checkpoint) -> Iterator[Damage]:
    if not checkpoint.files.exists(checkpoint.path("metadata")):
        follows = "Spark will take the query for a new one, with another id"
        yield Damage("metadata", "is missing", follows, _BACK)
    else:
        yield from _checked(checkpoint, "metadata", json_problem, "Spark cannot tell which query this is")


def _logs(checkpoint: Checkpoint) -> Iterator[Damage]:
    for log, newest, lines in (("offsets", NEWEST_OFFSETS, 2), ("commits", NEWEST_COMMITS, 1)):
        entries = checkpoint.files.entries(checkpoint.path(log))
        problem = partial(log_problem, newest=newest, lines_needed=lines)
        for entry in entries:
            if entry.name.isdigit() and not entry.directory:
                follows = f"Spark cannot read what it noted of batch {entry.name}"
                yield from _checked(checkpoint, f"{log}/{entry.name}", problem, follows)
            elif not _hidden(entry.name):
                yield _foreign(f"{log}/{entry.name}")


def _order(checkpoint: Checkpoint) -> Iterator[Damage]:
    """Every batch before the latest was begun and committed; the oldest are removed in time.

    A query without state may keep its progress by leaps, but then both logs leap alike.
    """
    begun, committed = checkpoint.begun(), checkpoint.committed()
    oldest = max(min(begun, default=0), min(committed, default=0))
    latest = max(begun, default=-1)
    leaps = set() if checkpoint.has_state() else set(range(latest)) - {*begun, *committed}
    for batch in range(oldest, max(latest, *committed, -1) + 1):
        if batch in leaps:
            continue
        if batch not in begun:
            follows = f"nothing tells what batch {batch} read, and later ones rest on it"
            yield Damage(f"offsets/{batch}", "is missing", follows, _BACK)
        if batch not in committed and batch != latest:
            follows = f"a later batch was begun, so batch {batch} was finished, and the log no longer says so"
            yield Damage(f"commits/{batch}", "is missing", follows, _BACK)


def _sources(checkpoint: Checkpoint) -> Iterator[Damage]:
    """What sources keep for themselves has forms of their own: told is what is empty or was changed."""
    follows = "the source cannot tell what was read already"
    for entry in checkpoint.files.walk(checkpoint.path("sources")):
        if not _hidden(entry.name.rpartition("/")[2]) and entry.size <= CHECKED_BYTES:
            yield from _checked(checkpoint, f"sources/{entry.name}", empty_problem, follows)
    for path in missing_entries(checkpoint):
        yield Damage(path, "is missing", follows, _BACK)


def _foreign_directories(checkpoint: Checkpoint) -> Iterator[Damage]:
    """Below `state` come numbered operators, below these numbered partitions."""
    for entry in checkpoint.files.entries(checkpoint.path("state")):
        if not entry.name.isdigit():
            if not _hidden(entry.name):
                yield _foreign(f"state/{entry.name}")
            continue
        for inner in checkpoint.files.entries(checkpoint.path("state", entry.name)):
            if not (inner.name.isdigit() and inner.directory) and not _hidden(inner.name):
                yield _foreign(f"state/{entry.name}/{inner.name}")


def _operator(checkpoint: Checkpoint, id: int, batch: int, commits: Sequence[int]) -> Iterator[Damage]:
    broken = list(_operator_metadata(checkpoint, id))
    yield from broken
    if broken:
        return
    operator = checkpoint.operator(id, batch)
    yield from _schemas(checkpoint, id, operator.stores)
    for path in operator.schema_files:
        if not checkpoint.files.exists(path):
            what = f"names the schema file {path}, which is missing"
            fix = "put the file back; if the checkpoint was moved, move it back to where it was made"
            yield Damage(f"state/{id}/_metadata", what, "neither Spark nor its reader knows what the state is", fix)
    ids = _unique_ids(checkpoint, id, commits)
    codec = checkpoint.settings(batch).get(CODEC, "lz4")
    begun = checkpoint.batches().begun
    for partition in range(operator.partitions):
        for number, store in enumerate(operator.stores):
            place = _Place(checkpoint, store_path(id, partition, store), batch, begun, codec)
            yield from _store(place, _ids_of(ids, partition, number))


def _schemas(checkpoint: Checkpoint, id: int, stores: Sequence[str]) -> Iterator[Damage]:
    """Those that the first partition keeps; a query runs without them."""
    for store in stores:
        path = f"{store_path(id, 0, store)}/_metadata/schema"
        if checkpoint.files.exists(checkpoint.path(path)):
            yield from _checked(checkpoint, path, empty_problem, "neither Spark nor its reader knows what the state is")


def _operator_metadata(checkpoint: Checkpoint, id: int) -> Iterator[Damage]:
    folder = f"state/{id}/_metadata"
    names = [f"{folder}/v2/{entry.name}" for entry in _plain_files(checkpoint, f"{folder}/v2")]
    names = names or [f"{folder}/{entry.name}" for entry in _plain_files(checkpoint, folder)]
    if not names:
        yield Damage(folder, "holds nothing", "Spark's reader cannot tell what operator this is", _BACK)
    problem = partial(log_problem, newest=NEWEST_OPERATOR, lines_needed=2)
    for name in names:
        yield from _checked(checkpoint, name, problem, "Spark's reader cannot tell what operator this is")


@dataclass(frozen=True, slots=True)
class _Place:
    """A store's directory, and what it is held against."""

    checkpoint: Checkpoint
    path: str
    batch: int
    begun: int
    codec: str

    @property
    def follows(self) -> str:
        return f"Spark cannot load the state of batch {self.batch}, and the query will not start"


def _store(place: _Place, ids: Mapping[int, str]) -> Iterator[Damage]:
    files = []
    for entry in _plain_files(place.checkpoint, place.path):
        if file := store_file(entry):
            files.append(file)
        else:
            yield _foreign(f"{place.path}/{entry.name}")
    needed = chain(files, version_after(place.batch), ids)
    yield from _gaps(place, files, needed)
    yield from _ahead(place, files)
    for file in needed.files:
        yield from _changes(place, file) if file.ending != "zip" else _snapshot(place, file)


def _gaps(place: _Place, files: Sequence[StoreFile], needed: Chain) -> Iterator[Damage]:
    newest, wanted = max((file.version for file in files), default=0), version_after(place.batch)
    if not files:
        yield Damage(place.path, "holds no state", place.follows, _BACK)
    elif newest < wanted:
        what = f"is behind: it ends with version {newest}, and batch {place.batch} made version {wanted}"
        yield Damage(place.path, what, place.follows, _BACK)
    ending = "delta" if any(file.ending in ("delta", "snapshot") for file in files) else "changelog"
    for version in needed.missing:
        if version <= newest:
            what = f"is missing, and no snapshot of versions {version} to {wanted} makes up for it"
            yield Damage(f"{place.path}/{version}.{ending}", what, place.follows, _BACK)


def _ahead(place: _Place, files: Sequence[StoreFile]) -> Iterator[Damage]:
    """A batch that was begun may have left its state already; one that was not begun cannot have."""
    newest = max(files, key=lambda file: file.version, default=None)
    if newest and newest.version > version_after(place.begun):
        what = f"is ahead: no batch after {place.begun} was begun"
        follows = "the logs lost their latest batches, or this file is of another checkpoint"
        yield Damage(f"{place.path}/{newest.name}", what, follows, _BACK)


def _changes(place: _Place, file: StoreFile) -> Iterator[Damage]:
    path = f"{place.path}/{file.name}"
    if file.size <= CHECKED_BYTES:
        yield from _checked(place.checkpoint, path, partial(stream_problem, codec=place.codec), place.follows)
    elif what := end_problem(place.checkpoint.files.tail(place.checkpoint.path(path), END_BYTES), place.codec):
        yield Damage(path, what, place.follows, _BACK)


def _snapshot(place: _Place, file: StoreFile) -> Iterator[Damage]:
    path = f"{place.path}/{file.name}"
    broken = list(_checked(place.checkpoint, path, snapshot_problem, place.follows))
    yield from broken
    if broken:
        return
    there = {
        f"{folder}/{entry.name}": entry.size
        for folder in ("SSTs", "logs")
        for entry in _plain_files(place.checkpoint, f"{place.path}/{folder}")
    }
    for shared in shared_files(place.checkpoint.files.read(place.checkpoint.path(path))):
        size = there.get(shared.path)
        if size != shared.size:
            what = "is missing" if size is None else f"has {size} bytes, and should have {shared.size}"
            yield Damage(f"{place.path}/{shared.path}", f"{what}, and {file.name} needs it", place.follows, _BACK)


def _checked(
    checkpoint: Checkpoint, path: str, problem: Callable[[bytes], str | None], follows: str
) -> Iterator[Damage]:
    """The file's own form, then Hadoop's checksums of it where there are any."""
    try:
        data = checkpoint.files.read(checkpoint.path(path))
    except FileNotFoundError:  # a query that runs removed it meanwhile
        return
    except OSError as error:
        yield Damage(path, f"cannot be read: {error}", follows, _BACK)
        return
    what = problem(data)
    if what is None and len(data) <= CHECKED_BYTES:
        folder, _, name = path.rpartition("/")
        sums = checkpoint.path(*filter(None, (folder, f".{name}.crc")))
        what = checksum_problem(data, checkpoint.files.read(sums)) if checkpoint.files.exists(sums) else None
    if what:
        yield Damage(path, what, follows, _BACK)


def _unique_ids(checkpoint: Checkpoint, operator: int, commits: Sequence[int]) -> Mapping[int, list[list[str]]]:
    """By version, the ids that its files carry; the commits tell."""
    found = {}
    for batch in commits:
        if ids := checkpoint.unique_ids(batch).get(operator):
            found[version_after(batch)] = ids
    return found


def _ids_of(ids: Mapping[int, list[list[str]]], partition: int, store: int) -> dict[int, str]:
    return {
        version: by_partition[partition][store]
        for version, by_partition in ids.items()
        if partition < len(by_partition) and store < len(by_partition[partition])
    }


def _plain_files(checkpoint: Checkpoint, folder: str) -> list[Entry]:
    entries = checkpoint.files.entries(checkpoint.path(folder))
    return [entry for entry in entries if not entry.directory and not _hidden(entry.name)]


def _foreign(path: str) -> Damage:
    follows = "no part of a checkpoint has such a name: Spark may stumble over it, or it overwrote something"
    return Damage(path, "is a foreign file", follows, "move it away")


def _hidden(name: str) -> bool:
    return name.startswith((".", "_")) or name.endswith(".crc")
