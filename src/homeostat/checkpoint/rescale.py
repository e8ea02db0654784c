"""Bring a state to another number of partitions: saved first, checked afterwards, put back if it went wrong.

Spark's own repartitioning does the work. What is under way stands in a journal beside the checkpoint, so that after a
crash at any point it goes on, or back.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from homeostat.checkpoint import file_sink_log, raw_rows, restore, savepoints
from homeostat.checkpoint.damage import require_sound
from homeostat.checkpoint.metadata import PROVIDER, Checkpoint
from homeostat.checkpoint.raw_rows import Digest, Part
from homeostat.checkpoint.state_reader import in_the_format_of, spark_path
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.spark_errors import first_line
from homeostat.spark_release import release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SINCE = (4, 2)
ROCKSDB = "RocksDBStateStoreProvider"
BEFORE = "before-rescale-"
_OPERATORS = re.compile(
    r"stateStoreSave|dedupe(WithinWatermark)?|sessionWindowStateStoreSaveExec|symmetricHashJoin"
    r"|flatMapGroupsWithState|applyInPandasWithState|transformWithState\w*"
)

Tell = Callable[[str], None]


class RescaleError(HomeostatError):
    """It did not come about; the message says how the checkpoint is now."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the journal holds: the state after `batch` goes from `before` to `partitions`.

    `sink` is the directory of a file sink, empty if there is none.
    """

    before: int
    partitions: int
    batch: int
    savepoint: str
    verify: bool = True
    sink: str = ""


@dataclass(frozen=True, slots=True)
class Rescaled:
    before: int
    partitions: int
    batch: int
    savepoint: str
    rows: int | None
    bytes: int | None
    phases_s: Mapping[str, float]


@dataclass(slots=True)
class _Course:
    """How far it has got."""

    phases_s: dict[str, float] = field(default_factory=dict)
    state: Mapping[Part, Digest] | None = None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.phases_s[name] = time.monotonic() - began


def say_nothing(text: str) -> None:
    """Nobody listens."""


def refusal(checkpoint: Checkpoint, spark_version: str) -> str:
    """Why this state cannot be repartitioned here; empty if it can."""
    if release(spark_version) < SINCE:
        return f"Spark {spark_version} cannot repartition state, {'.'.join(map(str, SINCE))} and later can"
    batch = checkpoint.batches().finished
    if batch < 0:
        return "no batch has been committed yet"
    if not checkpoint.has_state():
        return "the query has no state"
    provider = checkpoint.settings(batch).get(PROVIDER, "unknown").rpartition(".")[2]
    if provider != ROCKSDB:
        return f"its state is kept by {provider}, and Spark repartitions that of {ROCKSDB} only"
    operators = [checkpoint.operator(id, batch) for id in checkpoint.operators()]
    for operator in operators:
        if operator.name == "unknown":
            return f"operator {operator.id} has no metadata: it was written by Spark before 3.5"
        if not _OPERATORS.fullmatch(operator.name):
            return f"operator {operator.id} is {operator.name}, which Spark cannot repartition"
        if operator.single:  # Spark would move its one row to where nobody looks for it
            return f"operator {operator.id} aggregates without a key, so that it has one partition for good"
    return ""


def half_done(checkpoint: Checkpoint) -> list[str]:
    """What a crash has left, and what finishes it."""
    found = []
    if restore.unfinished(checkpoint):
        found.append("putting a savepoint back was cut short: `homeostat state restore` finishes it")
    if plan := unfinished(checkpoint):
        found.append(f"a rescale from {plan.before} to {plan.partitions} was cut short: call it again to finish it")
    return found


def has_open_batch(checkpoint: Checkpoint) -> bool:
    """Whether there is one that only the query can finish; a repartitioning that was cut short is none."""
    return checkpoint.batches().one_is_open and checkpoint.open_repartition() is None


def unfinished(checkpoint: Checkpoint) -> Plan | None:
    """What an earlier attempt that was cut short was after."""
    with suppress(FileNotFoundError):
        try:
            return Plan(**json.loads(checkpoint.files.read(_journal(checkpoint))))
        except (ValueError, TypeError) as error:
            raise RescaleError(
                "the note of an earlier rescale cannot be read",
                where=_journal(checkpoint),
                fix="restore the savepoint that it made, which removes the note",
            ) from error
    return None


def abandon(checkpoint: Checkpoint) -> None:
    """Forget what an earlier attempt was after, for the state is put back by other means."""
    checkpoint.files.delete(_journal(checkpoint))


def rescale(
    spark: SparkSession,
    checkpoint: Checkpoint,
    partitions: int,
    *,
    verify: bool = True,
    savepoint: str = BEFORE,
    sink: str = "",
    tell: Tell = say_nothing,
) -> Rescaled:
    """The query must not run, and its last batch must be committed. An earlier attempt is finished first.

    `savepoint` is how the savepoint's name begins; the batch follows. `sink` is the directory of a file sink.
    """
    earlier = finish(spark, checkpoint, tell=tell)
    if earlier is not None and earlier.partitions == partitions:
        return earlier
    require_sound(checkpoint)
    reason = refusal(checkpoint, str(spark.version)) or _not_now(checkpoint)
    if reason:
        raise RescaleError(reason, where=checkpoint.location)
    before, batch = checkpoint.state_partitions(), checkpoint.batches().finished
    assert before is not None
    if before == partitions:
        raise ConfigError(f"the state has {partitions} partitions already", where=checkpoint.location)
    name = savepoints.free_name(checkpoint, f"{savepoint}{batch}")
    if sink:
        file_sink_log.require_log(checkpoint, sink)
    plan = Plan(before, partitions, batch, name, verify, sink)
    checkpoint.files.write(_journal(checkpoint), json.dumps(asdict(plan)).encode())
    return _carry_out(spark, checkpoint, plan, tell)


def finish(spark: SparkSession, checkpoint: Checkpoint, *, tell: Tell = say_nothing) -> Rescaled | None:
    """Go on with what an earlier attempt, or Spark alone, left half done; None if there is no such thing."""
    restore.finish(checkpoint)
    plan = unfinished(checkpoint)
    if plan is not None and _overtaken(checkpoint, plan):
        abandon(checkpoint)
        plan = None
    if plan is not None:
        tell(f"an earlier attempt goes on: from {plan.before} to {plan.partitions} partitions")
        return _carry_out(spark, checkpoint, plan, tell)
    wanted = checkpoint.open_repartition()
    if wanted is not None:
        tell(f"Spark's repartitioning to {wanted} partitions goes on")
        _repartition(spark, checkpoint, wanted)
    return None


def _overtaken(checkpoint: Checkpoint, plan: Plan) -> bool:
    """Somebody let the query run on before anything was repartitioned."""
    return checkpoint.batches().begun > plan.batch and checkpoint.state_partitions() != plan.partitions


def _carry_out(spark: SparkSession, checkpoint: Checkpoint, plan: Plan, tell: Tell) -> Rescaled:
    course = _Course()
    try:
        _steps(spark, checkpoint, plan, course, tell)
    except Exception as error:
        raise RescaleError(f"{first_line(error)}; {_put_back(checkpoint, plan)}", where=checkpoint.location) from error
    checkpoint.files.delete(_journal(checkpoint))
    rows = size = None
    if course.state is not None:
        rows = sum(digest.rows for digest in course.state.values())
        size = sum(digest.bytes for digest in course.state.values())
    return Rescaled(plan.before, plan.partitions, plan.batch, plan.savepoint, rows, size, course.phases_s)


def _steps(spark: SparkSession, checkpoint: Checkpoint, plan: Plan, course: _Course, tell: Tell) -> None:
    """Each is left out if it was done before a crash."""
    if not savepoints.exists(checkpoint, plan.savepoint):
        tell(f"savepoint {plan.savepoint}")
        with course.phase("savepoint"):
            savepoints.make(checkpoint, plan.savepoint)
    # What the state was is read while Spark repartitions it: that leaves the old batch as it is.
    with in_the_format_of(spark, checkpoint, checkpoint.batches().finished), ThreadPoolExecutor(1) as beside:
        old = beside.submit(raw_rows.digests, spark, checkpoint, plan.batch) if plan.verify else None
        if checkpoint.batches().finished == plan.batch:
            tell(f"repartition from {plan.before} to {plan.partitions}")
            with course.phase("repartition"):
                _repartition(spark, checkpoint, plan.partitions)
        if old is not None and checkpoint.batches().begun == plan.batch + 1:
            tell("verify")
            with course.phase("verify"):
                course.state = raw_rows.digests(spark, checkpoint, plan.batch + 1)
                refuse_difference(old.result(), course.state)
    if plan.sink and checkpoint.batches().begun > plan.batch:
        file_sink_log.tell(spark, checkpoint, plan.sink, plan.batch + 1)


def refuse_difference(old: Mapping[Part, Digest], new: Mapping[Part, Digest]) -> None:
    """The rows are the same, and each lies where its key puts it; if not, say what differs."""
    for part in sorted(old.keys() | new.keys()):
        was, now = old.get(part, Digest(0, 0, 0)), new.get(part, Digest(0, 0, 0))
        what = f"operator {part.operator}, store {part.store}, {part.family}"
        if (was.rows, was.checksum) != (now.rows, now.checksum):
            raise RescaleError(f"the state differs: {what} had {was.rows} rows and has {now.rows}, or others")
        if now.misplaced:
            raise RescaleError(
                f"{now.misplaced} rows of {what} lie in a partition where their key will not be looked for"
            )


def _repartition(spark: SparkSession, checkpoint: Checkpoint, count: int) -> None:
    with in_the_format_of(spark, checkpoint, checkpoint.batches().finished):
        spark._streamingCheckpointManager.repartition(spark_path(checkpoint.location), count)
    there, batches = checkpoint.state_partitions(), checkpoint.batches()
    if there != count or batches.one_is_open:
        raise RescaleError(f"the state has {there} partitions after it was repartitioned to {count}")


def _put_back(checkpoint: Checkpoint, plan: Plan) -> str:
    """What came of it."""
    try:
        if not savepoints.exists(checkpoint, plan.savepoint):
            checkpoint.files.delete(_journal(checkpoint))
            return "nothing was changed"
        if checkpoint.batches().begun > plan.batch + 1:
            return "the query has begun batches since, so the state stays as it is"
        restore.restore(checkpoint, plan.savepoint, keep=False)
        checkpoint.files.delete(_journal(checkpoint))
    except Exception as error:
        return f"and the savepoint could not be put back: {first_line(error)}"
    return "the savepoint was put back"


def _not_now(checkpoint: Checkpoint) -> str:
    if not has_open_batch(checkpoint):
        return ""
    return f"batch {checkpoint.batches().begun} is open, and only the query itself can finish it"


def _journal(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.rescale.json"
