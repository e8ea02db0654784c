"""Finds data that checkpoints from before Spark 4.0 lack and that Spark's state reader needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homeostat.checkpoint.metadata import PROVIDER, Checkpoint
from homeostat.checkpoint.state_schema import DEDUPLICATION, SESSIONS
from homeostat.checkpoint.store_files import store_path

_RUN_ON_4 = "run one batch of the query on Spark 4.0 or later, which writes what is missing"

_GIVE = "give the schema to `homeostat state show` or `query` with --schema"
_NO_SCHEMA = "the types of the state are not known without it"


@dataclass(frozen=True, slots=True)
class Lack:
    """Why the tables of a checkpoint cannot be read, and how to change that."""

    reason: str
    fix: str


def lack_of(checkpoint: Checkpoint, batch: int | None = None) -> Lack | None:
    """Return why Spark's state reader cannot read the tables; None if it can, or if there is no state."""
    if not checkpoint.lacks_operator_metadata():
        return None
    settings = checkpoint.settings(batch)
    if not settings:
        logs = "neither a log of commits nor" if checkpoint.lacks_commits() else "not"
        reason = f"Spark before 2.2.1 wrote {logs} the settings of its batches, such as the number of state partitions"
        return Lack(reason, _RUN_ON_4)
    for id in checkpoint.operators():
        if lack := _lack_of_operator(checkpoint, id, settings, batch):
            return lack
    return None


def _lack_of_operator(checkpoint: Checkpoint, id: int, settings: Mapping[str, str], batch: int | None) -> Lack | None:
    operator = checkpoint.operator(id, batch)
    if "RocksDB" in settings.get(PROVIDER, "") and operator.name == SESSIONS:
        reason = (
            f"operator {id} has session windows in RocksDB, whose keys Spark before version 4.0 stored in an "
            f"undocumented form"
        )
        return Lack(reason, _RUN_ON_4)
    for store in operator.stores:
        path = f"{store_path(id, 0, store)}/_metadata/schema"
        if not checkpoint.files.exists(checkpoint.path(path)):
            old = checkpoint.may_lack_schemas()
            why = "Spark before version 3.1 did not store the schema of the state" if old else _NO_SCHEMA
            return Lack(f"{path} is missing: {why}", f"{_GIVE}, or {_RUN_ON_4}")
        schema = checkpoint.store_schema(id, store)
        if operator.name == DEDUPLICATION and schema is not None and schema.claims_whole_rows:
            reason = (
                f"{path} is wrong: for a deduplication, Spark before version 3.3.1 stored the schema of the rows, "
                f"which the state does not contain"
            )
            return Lack(reason, f"{_GIVE} 'key STRUCT<…>, value STRUCT<__dummy__: VOID>'")
    return None
