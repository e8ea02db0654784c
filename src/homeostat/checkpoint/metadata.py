"""What a streaming query's checkpoint says about itself. Read only: whatever changes one is elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from homeostat.checkpoint.files import Files, files_of
from homeostat.checkpoint.store_files import DEFAULT_STORE, StoreFile, store_file, store_path
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CODEC = "spark.sql.streaming.stateStore.compression.codec"
_LIMIT = "globalLimit"
_SCHEMA, _NO_FIELDS = b'{"type":"struct"', b'{"type":"struct","fields":[]}'
# Settings that a version of Spark was the first to write down with every batch, newest first.
_FIRST_WRITTEN_BY = {
    "spark.sql.dropDuplicates.deterministicKeyOrder.enabled": "4.3 or later",
    "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion": "4.2",
    "spark.sql.streaming.stateStore.encodingFormat": "4.0 or 4.1",
}


@dataclass(frozen=True, slots=True)
class Batches:
    """The latest batch that was begun, and the latest that was finished; -1 if there is none."""

    begun: int = -1
    finished: int = -1

    @property
    def one_is_open(self) -> bool:
        return self.begun > self.finished


@dataclass(frozen=True, slots=True)
class Variable:
    """A state variable of transformWithState."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Operator:
    """A stateful operator as Spark wrote it down when it first ran, or last changed.

    `single`: all rows meet in one partition, whatever the number of partitions is; a limit, or an aggregation of
    everything.
    """

    id: int
    name: str
    stores: tuple[str, ...]
    partitions: int
    single: bool = False
    variables: tuple[Variable, ...] = ()
    time_mode: str = ""
    schema_files: tuple[str, ...] = ()


def open_checkpoint(location: str, spark: SparkSession | None = None) -> Checkpoint:
    """The checkpoint at this place, which must hold the files of one."""
    checkpoint = Checkpoint(location, files_of(location, spark))
    require_there(checkpoint)
    return checkpoint


def require_there(checkpoint: Checkpoint) -> None:
    files, location = checkpoint.files, checkpoint.location
    if not files.exists(location):
        raise ConfigError("there is nothing here", where=location, fix="give the directory of a query's checkpoint")
    if not any(files.exists(checkpoint.path(name)) for name in ("metadata", "offsets", "commits")):
        raise ConfigError(
            "this is no checkpoint: it has no metadata, offsets or commits",
            where=location,
            fix="give the checkpointLocation of one query",
        )


class Checkpoint:
    """A query's own log of its batches and, if it has state, the files of its stores."""

    def __init__(self, location: str, files: Files) -> None:
        self.location = location.rstrip("/") or location
        self.files = files

    def path(self, *parts: object) -> str:
        return "/".join((self.location, *map(str, parts)))

    @cached_property
    def _metadata(self) -> Mapping[str, Any]:
        return _parsed(self.files.read(self.path("metadata"))) if self.files.exists(self.path("metadata")) else {}

    def query_id(self) -> str | None:
        return self._metadata.get("id")

    def begun(self) -> list[int]:
        """The batches kept in the log of offsets, oldest first."""
        return self._numbers("offsets")

    def committed(self) -> list[int]:
        """The batches kept whose commit was written, oldest first."""
        return self._numbers("commits")

    def batches(self) -> Batches:
        # Commits first: a query that runs may finish a batch in between, but never before it began it.
        finished = max(self.committed(), default=-1)
        return Batches(max(self.begun(), default=-1), finished)

    def settings(self, batch: int | None = None) -> Mapping[str, str]:
        """What Spark holds fixed for this batch, or for the latest that was begun."""
        batch = self.batches().begun if batch is None else batch
        if batch < 0:
            return {}
        # A version line, the metadata, then one line per source.
        lines = self.files.read(self.path("offsets", batch)).decode().splitlines()
        conf = _parsed(lines[1]).get("conf", {}) if len(lines) > 1 and lines[1].strip() else {}
        return {str(name): str(value) for name, value in conf.items()}

    def state_partitions(self, batch: int | None = None) -> int | None:
        """How many partitions the state has after this batch, or after the latest that was begun."""
        value = self.settings(batch).get(PARTITIONS)
        return None if value is None else int(value)

    def open_repartition(self) -> int | None:
        """The number of partitions that an interrupted repartitioning was after."""
        batches = self.batches()
        if not batches.one_is_open or batches.begun < 1:
            return None
        wanted, before = self.state_partitions(batches.begun), self.state_partitions(batches.begun - 1)
        return wanted if wanted != before else None

    def written_by(self) -> str | None:
        """The versions of Spark that may have written the latest batch."""
        settings = self.settings()
        if not settings:
            return None
        return next((version for name, version in _FIRST_WRITTEN_BY.items() if name in settings), "3.x")

    def has_state(self) -> bool:
        return bool(self.operators())

    def operators(self) -> list[int]:
        return self._numbers("state")

    def operator(self, id: int, batch: int | None = None) -> Operator:
        """What is known of a stateful operator as of this batch, or the latest that was begun."""
        batch = self.batches().begun if batch is None else batch
        written = self._operator_metadata(id, batch)
        stores = written.get("stateStoreInfo", [])
        properties = json.loads(written.get("operatorPropertiesJson") or "{}")
        name = str(written.get("operatorInfo", {}).get("operatorName", "unknown"))
        single = name == _LIMIT or self._has_no_key(id)
        return Operator(
            id,
            name,
            tuple(str(store["storeName"]) for store in stores) or tuple(self.stores(id, 0)),
            # What is noted with the operator is the number it began with.
            1 if single else self.state_partitions(batch) or max((int(s["numPartitions"]) for s in stores), default=0),
            single,
            tuple(_variables(properties)),
            str(properties.get("timeMode", "")),
            tuple(str(path) for store in stores for path in store.get("stateSchemaFilePaths", ())),
        )

    def stores(self, operator: int, partition: int) -> list[str]:
        """The names of a partition's stores; one that has no directory of its own is called default."""
        entries = self.files.entries(self.path("state", operator, partition))
        named = [entry.name for entry in entries if entry.directory and not _reserved(entry.name)]
        own = any(store_file(entry) for entry in entries if not entry.directory)
        return [DEFAULT_STORE, *named] if own or not named else named

    def store_files(self, operator: int, partition: int, store: str = DEFAULT_STORE) -> list[StoreFile]:
        """The snapshots and changes of a store, by version; what else lies there is left out."""
        entries = self.files.entries(self.path(store_path(operator, partition, store)))
        found = [file for entry in entries if not entry.directory and (file := store_file(entry))]
        return sorted(found, key=lambda file: (file.version, file.name))

    def unique_ids(self, batch: int) -> Mapping[int, list[list[str]]]:
        """The ids that the batch's files carry in their names, by operator, partition and store; often none."""
        lines = self.files.read(self.path("commits", batch)).decode().splitlines()
        ids = (_parsed(lines[1]).get("stateUniqueIds") if len(lines) > 1 else None) or {}
        return {int(operator): partitions for operator, partitions in ids.items()}

    def _operator_metadata(self, id: int, batch: int) -> Mapping[str, Any]:
        versions = [number for number in self._numbers("state", id, "_metadata", "v2") if number <= batch]
        path = self.path("state", id, "_metadata", *(("v2", versions[-1]) if versions else ("metadata",)))
        if not self.files.exists(path):
            return {}
        return _parsed(self.files.read(path).split(b"\n", 1)[-1])

    def _has_no_key(self, id: int) -> bool:
        """Of an aggregation the schema tells, which begins with that of the key."""
        path = self.path("state", id, 0, "_metadata", "schema")
        schema = self.files.read(path) if self.files.exists(path) else b""
        return _SCHEMA in schema and schema.index(_SCHEMA) == schema.find(_NO_FIELDS)

    def _numbers(self, *parts: object) -> list[int]:
        return sorted(int(entry.name) for entry in self.files.entries(self.path(*parts)) if entry.name.isdigit())


def _variables(properties: Mapping[str, Any]) -> Iterator[Variable]:
    for variable in properties.get("stateVariables", ()):
        yield Variable(str(variable["stateName"]), str(variable["stateVariableType"]))


def _reserved(name: str) -> bool:
    return name.startswith("_") or name in ("SSTs", "logs")


def _parsed(text: str | bytes) -> Mapping[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is no JSON object")
    return value
