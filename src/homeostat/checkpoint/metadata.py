"""Reads the logs and the metadata in the checkpoint of a streaming query. It never changes a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from homeostat.checkpoint.files import Files, files_of, real_location
from homeostat.checkpoint.state_schema import UNKNOWN, StoreSchema, operator_name, read_schema
from homeostat.checkpoint.store_files import DEFAULT_STORE, StoreFile, store_file, store_path
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CODEC = "spark.sql.streaming.stateStore.compression.codec"
_LIMIT = "globalLimit"
_SUMS_FORMAT = "spark.sql.streaming.aggregation.stateFormatVersion"
_SCHEMA, _NO_FIELDS = b'{"type":"struct"', b'{"type":"struct","fields":[]}'
_LAST_BEFORE_SETTINGS = "2.1 or 2.2.0"
# Each version of Spark logs more settings with a batch. The first of these that is logged shows which versions may have
# written the batch. Spark before 2.2.1 logged none.
_FIRST_WRITTEN_BY = {
    "spark.sql.dropDuplicates.deterministicKeyOrder.enabled": "4.3 or later",
    "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion": "4.2",
    "spark.sql.streaming.stateStore.encodingFormat": "4.0 or 4.1",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "3.2.2 to 3.5",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion": "3.2",
    "spark.sql.streaming.stateStore.compression.codec": "3.1",
    "spark.sql.streaming.join.stateFormatVersion": "3.0",
    "spark.sql.streaming.multipleWatermarkPolicy": "2.4",
    "spark.sql.shuffle.partitions": "2.2.1 to 2.3",
}
_WITHOUT_SCHEMAS = ("3.0", "2.4", "2.2.1 to 2.3", _LAST_BEFORE_SETTINGS)
_WRITES_OPERATOR_METADATA = ("4.3 or later", "4.2", "4.0 or 4.1")


@dataclass(frozen=True, slots=True)
class Batches:
    """The latest batch that was started and the latest that was committed; -1 if there is none."""

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
    """A stateful operator as Spark recorded it when the operator first ran or last changed.

    A `single` operator has all its rows in one partition, whatever the number of partitions: a limit, or an aggregation
    without a key. Spark before version 4.0 recorded no operators: the kind of an `inferred` operator is inferred from
    its state.
    """

    id: int
    name: str
    stores: tuple[str, ...]
    partitions: int
    single: bool = False
    variables: tuple[Variable, ...] = ()
    time_mode: str = ""
    schema_files: tuple[str, ...] = ()
    inferred: bool = False


def open_checkpoint(location: str, spark: SparkSession | None = None) -> Checkpoint:
    """Return the checkpoint at a location. Raise ConfigError if there is none."""
    checkpoint = Checkpoint(location, files_of(location, spark))
    require_there(checkpoint)
    return checkpoint


def require_there(checkpoint: Checkpoint) -> None:
    files, location = checkpoint.files, checkpoint.location
    if not files.exists(location):
        raise ConfigError(
            "there is no such directory", where=location, fix="give the checkpointLocation of a streaming query"
        )
    if not any(files.exists(checkpoint.path(name)) for name in ("metadata", "offsets", "commits")):
        raise ConfigError(
            "this directory is not a checkpoint: it has no metadata, offsets or commits",
            where=location,
            fix="give the checkpointLocation of one streaming query",
        )


class Checkpoint:
    """The checkpoint of a query: the logs of its batches and, if it has state, the files of its state stores.

    `location` is the real path. Spark's state reader gets `spark_location`, which may be a link, because it cannot open
    every path.
    """

    def __init__(self, location: str, files: Files) -> None:
        self.location = real_location(location)
        self.spark_location = location.rstrip("/") or location
        self.files = files

    def path(self, *parts: object) -> str:
        return "/".join((self.location, *map(str, parts)))

    @cached_property
    def _metadata(self) -> Mapping[str, Any]:
        return _parse(self.files.read(self.path("metadata"))) if self.files.exists(self.path("metadata")) else {}

    def query_id(self) -> str | None:
        return self._metadata.get("id")

    def begun_batches(self) -> list[int]:
        """Return the batches in the log of offsets, oldest first."""
        return self._numbers("offsets")

    def committed_batches(self) -> list[int]:
        """Return the batches in the log of commits, oldest first."""
        return self._numbers("commits")

    def batches(self) -> Batches:
        # Read commits first: a running query may commit a batch in between, but only after starting it.
        last_finished = max(self.committed_batches(), default=-1)
        return Batches(max(self.begun_batches(), default=-1), last_finished)

    def settings(self, batch: int | None = None) -> Mapping[str, str]:
        """Return the settings that Spark logged with this batch, or with the latest one."""
        batch = self.batches().begun if batch is None else batch
        if batch < 0:
            return {}
        # A version line, the metadata, then one line per source.
        lines = self.files.read(self.path("offsets", batch)).decode().splitlines()
        conf = _parse(lines[1]).get("conf", {}) if len(lines) > 1 and lines[1].strip() else {}
        return {str(name): str(value) for name, value in conf.items()}

    def state_partitions(self, batch: int | None = None) -> int | None:
        """Return the number of state partitions after this batch, or after the latest one."""
        value = self.settings(batch).get(PARTITIONS)
        return None if value is None else int(value)

    def open_repartition(self) -> int | None:
        """Return the target of an interrupted repartitioning; None if there is none."""
        batches, begun_batches = self.batches(), self.begun_batches()
        if not batches.one_is_open or len(begun_batches) < 2:
            return None
        # The number of the previous batch may not be one less: a query without state may skip batches.
        target, before = self.state_partitions(batches.begun), self.state_partitions(begun_batches[-2])
        return target if target != before else None

    def written_by(self) -> str | None:
        """Return the versions of Spark that may have written the latest batch."""
        if self.batches().begun < 0:
            return None
        settings = self.settings()
        return next((version for name, version in _FIRST_WRITTEN_BY.items() if name in settings), _LAST_BEFORE_SETTINGS)

    def lacks_commits(self) -> bool:
        """Return whether a version of Spark without a log of commits wrote this. Such a version logged no settings."""
        try:
            return not self.files.exists(self.path("commits")) and self.written_by() == _LAST_BEFORE_SETTINGS
        except (ValueError, OSError):  # the check for damage reports a damaged log
            return False

    def may_lack_schemas(self) -> bool:
        """Return whether Spark before version 3.1 wrote the state. It did not store the schema of the state."""
        return self.written_by() in _WITHOUT_SCHEMAS

    def has_state(self) -> bool:
        return bool(self.operators())

    def lacks_operator_metadata(self) -> bool:
        """Return whether Spark before version 4.0 wrote the state. It stored no metadata of the operators."""
        try:
            if self.written_by() in _WRITES_OPERATOR_METADATA:
                return False
        except (ValueError, OSError):  # the check for damage reports a damaged log
            return False
        operators = self.operators()
        return bool(operators) and not any(self.files.exists(self.path("state", id, "_metadata")) for id in operators)

    def operators(self) -> list[int]:
        return self._numbers("state")

    def operator(self, id: int, batch: int | None = None) -> Operator:
        """Return a stateful operator as of this batch, or of the latest one."""
        batch = self.batches().begun if batch is None else batch
        recorded = self._operator_metadata(id, batch)
        stores = recorded.get("stateStoreInfo", [])
        properties = json.loads(recorded.get("operatorPropertiesJson") or "{}")
        store_names = tuple(str(store["storeName"]) for store in stores) or tuple(self.stores(id, 0))
        inferred_name = "" if recorded else self._inferred_name(id, store_names, batch)
        name = inferred_name or str(recorded.get("operatorInfo", {}).get("operatorName", UNKNOWN))
        single = name == _LIMIT or self._has_no_key(id)
        # The metadata of the operator has the number of partitions at its first run.
        at_first = max((int(store["numPartitions"]) for store in stores), default=0) or len(self._numbers("state", id))
        return Operator(
            id,
            name,
            store_names,
            1 if single else self.state_partitions(batch) or at_first,
            single,
            tuple(_variables(properties)),
            str(properties.get("timeMode", "")),
            tuple(str(path) for store in stores for path in store.get("stateSchemaFilePaths", ())),
            inferred=not recorded,
        )

    def stores(self, operator: int, partition: int) -> list[str]:
        """Return the names of the stores of a partition. A store without its own directory is called default."""
        entries = self.files.entries(self.path("state", operator, partition))
        named_stores = [entry.name for entry in entries if entry.directory and not _is_reserved(entry.name)]
        has_default = any(store_file(entry) for entry in entries if not entry.directory)
        return [DEFAULT_STORE, *named_stores] if has_default or not named_stores else named_stores

    def store_schema(self, operator: int, store: str) -> StoreSchema | None:
        """Return the schema of a store, which its first partition has; None if Spark wrote none, as before 3.1."""
        path = self.path(store_path(operator, 0, store), "_metadata", "schema")
        return read_schema(self.files.read(path)) if self.files.exists(path) else None

    def store_files(self, operator: int, partition: int, store: str = DEFAULT_STORE) -> list[StoreFile]:
        """Return the snapshots and changes of a store, sorted by version. Other files are ignored."""
        entries = self.files.entries(self.path(store_path(operator, partition, store)))
        files = [file for entry in entries if not entry.directory and (file := store_file(entry))]
        return sorted(files, key=lambda file: (file.version, file.name))

    def unique_ids(self, batch: int) -> Mapping[int, list[list[str]]]:
        """Return the ids in the names of a batch's state files, by operator, partition and store; often none."""
        lines = self.files.read(self.path("commits", batch)).decode().splitlines()
        ids = (_parse(lines[1]).get("stateUniqueIds") if len(lines) > 1 else None) or {}
        return {int(operator): partitions for operator, partitions in ids.items()}

    def _operator_metadata(self, id: int, batch: int) -> Mapping[str, Any]:
        versions = [number for number in self._numbers("state", id, "_metadata", "v2") if number <= batch]
        path = self.path("state", id, "_metadata", *(("v2", versions[-1]) if versions else ("metadata",)))
        if not self.files.exists(path):
            return {}
        return _parse(self.files.read(path).split(b"\n", 1)[-1])

    def _inferred_name(self, id: int, stores: Sequence[str], batch: int) -> str:
        old_sums = self.settings(batch).get(_SUMS_FORMAT, "1") == "1"  # Spark 2.3 had no other format
        return operator_name(stores, self.store_schema(id, stores[0]), sums_have_keys=old_sums)

    def _has_no_key(self, id: int) -> bool:
        """Whether an aggregation has no key. Its schema file starts with the schema of the key."""
        path = self.path("state", id, 0, "_metadata", "schema")
        schema = self.files.read(path) if self.files.exists(path) else b""
        return _SCHEMA in schema and schema.index(_SCHEMA) == schema.find(_NO_FIELDS)

    def _numbers(self, *parts: object) -> list[int]:
        return sorted(int(entry.name) for entry in self.files.entries(self.path(*parts)) if entry.name.isdigit())


def _variables(properties: Mapping[str, Any]) -> Iterator[Variable]:
    for variable in properties.get("stateVariables", ()):
        yield Variable(str(variable["stateName"]), str(variable["stateVariableType"]))


def _is_reserved(name: str) -> bool:
    return name.startswith("_") or name in ("SSTs", "logs")


def _parse(text: str | bytes) -> Mapping[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, found {value!r}")
    return value
