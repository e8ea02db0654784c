"""Changes the number of state partitions: makes a savepoint, verifies the result, and restores the savepoint on
failure.

Spark's own repartitioning does the work. A journal beside the checkpoint records the plan, so that after a crash at any
point the change is completed or undone.
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

# The first release of Spark that can repartition state.
SINCE = (4, 2)
ROCKSDB = "RocksDBStateStoreProvider"
BEFORE = "before-rescale-"
_OPERATORS = re.compile(
    r"stateStoreSave|dedupe(WithinWatermark)?|sessionWindowStateStoreSaveExec|symmetricHashJoin"
    r"|flatMapGroupsWithState|applyInPandasWithState|transformWithState\w*"
)

Tell = Callable[[str], None]


class RescaleError(HomeostatError):
    """The partitions were not changed. The message says in which state the checkpoint is now."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The content of the journal: the state after `batch` goes from `before` to `partitions` partitions.

    `sink` is the directory of a file sink; empty if there is none.
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
    """The time that each phase took, and the digests of the new state."""

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
    """Ignore the progress messages."""


def refusal(checkpoint: Checkpoint, spark_version: str) -> str:
    """Say why this state cannot be repartitioned; empty if it can."""
    if release(spark_version) < SINCE:
        return (
            f"Spark {spark_version} cannot repartition state; this requires Spark {'.'.join(map(str, SINCE))} or newer"
        )
    batch = checkpoint.batches().finished
    if batch < 0:
        return "no batch has been committed yet, so there is no state to repartition"
    if not checkpoint.has_state():
        return "the query has no state"
    provider = checkpoint.settings(batch).get(PROVIDER, "unknown").rpartition(".")[2]
    if provider != ROCKSDB:
        return f"the state store is {provider}, and Spark can repartition only {ROCKSDB}"
    operators = [checkpoint.operator(id, batch) for id in checkpoint.operators()]
    for operator in operators:
        if operator.inferred:
            return f"operator {operator.id} has no metadata, because Spark wrote it before version 4.0"
        if not _OPERATORS.fullmatch(operator.name):
            return f"operator {operator.id} is {operator.name}, which Spark cannot repartition"
        if operator.single:  # Spark would move its one row to a partition where it is never looked up
            return f"operator {operator.id} aggregates without a key, so it always has one partition"
    return ""


def half_done(checkpoint: Checkpoint) -> list[str]:
    """Return what a crash has left unfinished, and how to finish it."""
    unfinished_work = []
    if restore.is_unfinished(checkpoint):
        unfinished_work.append("a restore was interrupted: run `homeostat state restore` again to finish it")
    if plan := unfinished_plan(checkpoint):
        unfinished_work.append(
            f"a rescale from {plan.before} to {plan.partitions} partitions was interrupted: "
            "run `homeostat state rescale` again to finish it"
        )
    return unfinished_work


def has_open_batch(checkpoint: Checkpoint) -> bool:
    """Return whether a batch is open that only the query can finish. An interrupted repartitioning does not count."""
    return checkpoint.batches().one_is_open and checkpoint.open_repartition() is None


def unfinished_plan(checkpoint: Checkpoint) -> Plan | None:
    """Return the plan of an earlier, interrupted attempt; None if there is none."""
    with suppress(FileNotFoundError):
        try:
            return Plan(**json.loads(checkpoint.files.read(_journal(checkpoint))))
        except (ValueError, TypeError) as error:
            raise RescaleError(
                "the journal of an interrupted rescale cannot be read",
                where=_journal(checkpoint),
                fix="restore the savepoint that the rescale made, which also removes the journal",
            ) from error
    return None


def abandon(checkpoint: Checkpoint) -> None:
    """Delete the journal of an earlier attempt, because the state is restored by other means."""
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
    """Change the number of state partitions. The query must not run, and its last batch must be committed.

    An earlier interrupted attempt is finished first. `savepoint` is the start of the savepoint's name; the number of
    the batch follows. `sink` is the directory of a file sink.
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
        raise ConfigError(
            f"the state already has {partitions} partitions", where=checkpoint.location, fix="choose another number"
        )
    name = savepoints.free_name(checkpoint, f"{savepoint}{batch}")
    if sink:
        file_sink_log.require_log(checkpoint, sink)
    plan = Plan(before, partitions, batch, name, verify, sink)
    checkpoint.files.write(_journal(checkpoint), json.dumps(asdict(plan)).encode())
    return _carry_out(spark, checkpoint, plan, tell)


def finish(spark: SparkSession, checkpoint: Checkpoint, *, tell: Tell = say_nothing) -> Rescaled | None:
    """Finish an interrupted restore, rescale or repartitioning; None if there was no plan to finish."""
    restore.finish(checkpoint)
    plan = unfinished_plan(checkpoint)
    if plan is not None and _is_overtaken(checkpoint, plan):
        abandon(checkpoint)
        plan = None
    if plan is not None:
        tell(f"continuing an interrupted rescale from {plan.before} to {plan.partitions} partitions")
        return _carry_out(spark, checkpoint, plan, tell)
    target = checkpoint.open_repartition()
    if target is not None:
        tell(f"continuing an interrupted repartitioning to {target} partitions")
        _repartition(spark, checkpoint, target)
    return None


def _is_overtaken(checkpoint: Checkpoint, plan: Plan) -> bool:
    """Whether the query has started later batches, and the state was never repartitioned."""
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
    """Carry out the steps of the plan, without those that were completed before a crash."""
    if not savepoints.exists(checkpoint, plan.savepoint):
        tell(f"making savepoint {plan.savepoint}")
        with course.phase("savepoint"):
            savepoints.make(checkpoint, plan.savepoint)
    # Read the old state while Spark writes the new one: repartitioning leaves the old batch unchanged.
    with in_the_format_of(spark, checkpoint, checkpoint.batches().finished), ThreadPoolExecutor(1) as beside:
        old = beside.submit(raw_rows.digests, spark, checkpoint, plan.batch) if plan.verify else None
        if checkpoint.batches().finished == plan.batch:
            tell(f"repartitioning from {plan.before} to {plan.partitions} partitions")
            with course.phase("repartition"):
                _repartition(spark, checkpoint, plan.partitions)
        if old is not None and checkpoint.batches().begun == plan.batch + 1:
            tell("verifying the new state")
            with course.phase("verify"):
                course.state = raw_rows.digests(spark, checkpoint, plan.batch + 1)
                refuse_difference(old.result(), course.state)
    if plan.sink and checkpoint.batches().begun > plan.batch:
        file_sink_log.add_entry(spark, checkpoint, plan.sink, plan.batch + 1)


def refuse_difference(old: Mapping[Part, Digest], new: Mapping[Part, Digest]) -> None:
    """Raise RescaleError if the rows differ, or if a row is not in the partition of its key."""
    for part in sorted(old.keys() | new.keys()):
        was, now = old.get(part, Digest(0, 0, 0)), new.get(part, Digest(0, 0, 0))
        what = f"operator {part.operator}, store {part.store}, {part.family}"
        if (was.rows, was.checksum) != (now.rows, now.checksum):
            raise RescaleError(
                f"the state has changed: {what} had {was.rows} rows and now has {now.rows} rows, or other content"
            )
        if now.misplaced:
            raise RescaleError(
                f"{now.misplaced} rows of {what} are in a partition where Spark will not look for their key"
            )


def _repartition(spark: SparkSession, checkpoint: Checkpoint, count: int) -> None:
    with in_the_format_of(spark, checkpoint, checkpoint.batches().finished):
        spark._streamingCheckpointManager.repartition(spark_path(checkpoint.spark_location), count)
    actual, batches = checkpoint.state_partitions(), checkpoint.batches()
    if actual != count or batches.one_is_open:
        raise RescaleError(f"Spark repartitioned the state to {count} partitions, but it has {actual}")


def _put_back(checkpoint: Checkpoint, plan: Plan) -> str:
    """Restore the savepoint after a failure, and return a description of the state of the checkpoint."""
    try:
        if not savepoints.exists(checkpoint, plan.savepoint):
            checkpoint.files.delete(_journal(checkpoint))
            return "the checkpoint was not changed"
        if checkpoint.batches().begun > plan.batch + 1:
            return "the query has started batches since, so the new state was kept"
        restore.restore(checkpoint, plan.savepoint, keep=False)
        checkpoint.files.delete(_journal(checkpoint))
    except Exception as error:
        return f"the savepoint {plan.savepoint} could not be restored: {first_line(error)}"
    return f"the savepoint {plan.savepoint} was restored"


def _not_now(checkpoint: Checkpoint) -> str:
    if not has_open_batch(checkpoint):
        return ""
    return f"batch {checkpoint.batches().begun} is not committed, and only the query itself can finish it"


def _journal(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.rescale.json"
