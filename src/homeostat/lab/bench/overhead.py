"""Measures the cost of the manager for the job: throughput with and without it, and the driver's CPU time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import ROWS_PER_TRIGGER, SOURCE_PARTITIONS, STATE_PARTITIONS, TRIGGER_S, Knob, Value
from homeostat.core.errors import HomeostatError
from homeostat.core.records import ACTION, BATCH
from homeostat.lab.bench.endless_topic import NAME as TOPIC
from homeostat.lab.bench.endless_topic import EndlessTopic, endless_topic
from homeostat.lab.bench.ground import Ground, ground, machine
from homeostat.lab.bench.intervals import METHOD, median_interval
from homeostat.lab.bench.quiet import GivenUp, Patience, Tell, disturbed_json, repeat_until_undisturbed
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import NAME, WordCount, pipeline_of, specification
from homeostat.runtime.attach import attach
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark.act.query_errors import QueryError
from homeostat.spark.pipeline import Context
from homeostat.spark.sense.progress import Progress, read_progress
from homeostat.spark.sense.query_handle import handle_of
from homeostat.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTORS = 2
STATE = 2
ROWS, WORK_MS = 3_000, 0.5
# Far more than the job can process, so that its throughput depends only on its work and on the manager's CPU time.
ARRIVING_PER_S = 50_000.0
MOST_TINY_BATCHES = 30
# Batches after the manager starts that do not count, since it then reads the whole application. The batch under way
# never counts, since it began before the change. After the manager stops, no other batch needs to be skipped.
SKIPPED = 3
LONGEST_S = 600.0
PARTITIONS = 4 * EXECUTORS
PROFILE = Profile(WorkloadSpec("constant", ARRIVING_PER_S))
WITHOUT_AND_WITH = (False, True, True, False)


@dataclass(frozen=True, slots=True)
class Segment:
    """Some batches of the job in a row, with or without the manager."""

    managed: bool
    batches: int
    rows: float
    seconds: float
    cpu_s: float

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds


def measure(
    *, pairs: int, batches: int, tasks: Sequence[int], kafka: bool = False, tell: Tell = lambda _: None
) -> dict[str, Any]:
    """The numbers of `homeostat bench overhead`."""
    before = machine()
    tell("starting a cluster")
    with ground("bench-overhead", EXECUTORS, most=EXECUTORS, kafka=kafka) as here, _topic(here, kafka) as topic:
        manager = _Manager(here)
        segments, steal_shares = _throughput(here, manager, topic, pairs, batches, tell)
        driver = {str(count): _driver_cpu(here, manager, topic, count, tell) for count in tasks}
        observed_batches, actions = manager.count_records(BATCH), manager.count_records(ACTION)
    return {
        "source": "kafka" if kafka else "experiment",
        **throughput_json(segments),
        "batches_a_segment": batches,
        "batches_seen_by_the_manager": observed_batches,
        "actions_of_the_manager": actions,
        "executors": EXECUTORS,
        "driver_cpu_s_per_batch": driver,
        "machine": {"before": before, "after": machine()},
        "disturbed": disturbed_json(steal_shares),
    }


def throughput_json(segments: Sequence[Segment]) -> dict[str, Any]:
    """Segments come in pairs: one with the manager and one without, in either order."""
    pairs = [
        {part.managed: part.rows_per_s for part in segments[start : start + 2]} for start in range(0, len(segments), 2)
    ]
    ratios = [pair[True] / pair[False] for pair in pairs]
    interval = median_interval(ratios)
    return {
        "throughput_ratio": interval.median,
        "throughput_ratio_interval": [interval.low, interval.high],
        "interval_coverage": interval.coverage,
        "interval_method": METHOD,
        "pairs": len(ratios),
        "ratios": ratios,
        "rows_per_s": {"with": [pair[True] for pair in pairs], "without": [pair[False] for pair in pairs]},
    }


def _topic(here: Ground, kafka: bool) -> AbstractContextManager[EndlessTopic | None]:
    return endless_topic(here.directory / "broker", PARTITIONS, PROFILE) if kafka else nullcontext()


def _throughput(
    here: Ground, manager: _Manager, topic: EndlessTopic | None, pairs: int, batches: int, tell: Tell
) -> tuple[list[Segment], dict[str, list[float]]]:
    """The segments, and for each pair the share of the machine that others used in each try."""
    segments: list[Segment] = []
    steal_shares: dict[str, list[float]] = {}
    patience = Patience()
    with _job(here, topic, "throughput", PARTITIONS, ROWS, WORK_MS) as job:
        tell("warming up")
        _segment(here, manager, job, batches, SKIPPED, managed=True)
        for number in range(pairs):
            order = (False, True) if number % 2 else (True, False)

            def pair(_attempt: int, _given_up: GivenUp, order: Sequence[bool] = order) -> list[Segment]:
                job.fill()
                return [_segment(here, manager, job, batches, SKIPPED, managed=managed) for managed in order]

            (one, other), steal_shares[f"pair {number + 1}"] = repeat_until_undisturbed(pair, patience, tell)
            segments += [one, other]
            ratio = one.rows_per_s / other.rows_per_s if one.managed else other.rows_per_s / one.rows_per_s
            tell(f"pair {number + 1} of {pairs}: {ratio:.3f} at {one.rows_per_s:,.0f} rows/s")
    return segments, steal_shares


def _driver_cpu(here: Ground, manager: _Manager, topic: EndlessTopic | None, tasks: int, tell: Tell) -> dict[str, Any]:
    """CPU time of the driver per batch. Rows cost almost nothing, so the cost of a batch is that of its tasks."""
    batches = max(1, min(MOST_TINY_BATCHES, 1_000 // tasks))
    skipped_batches = min(SKIPPED, 100 // tasks)
    with _job(here, topic, f"tasks-{tasks}", max(1, tasks - STATE), 2 * tasks, 0.0) as job:
        tell(f"{tasks:,} tasks a batch")
        segments = [
            _segment(here, manager, job, batches, skipped_batches, managed=managed) for managed in WITHOUT_AND_WITH
        ]
    figures = {
        name: _per_batch([s for s in segments if s.managed == managed])
        for name, managed in (("with", True), ("without", False))
    }
    tell(f"{tasks:,} tasks: {figures['with']['cpu_s']:.2f} CPU-seconds with, {figures['without']['cpu_s']:.2f} without")
    return figures


def _per_batch(segments: Sequence[Segment]) -> dict[str, float]:
    batches = sum(segment.batches for segment in segments)
    return {
        "cpu_s": sum(segment.cpu_s for segment in segments) / batches,
        "batch_s": sum(segment.seconds for segment in segments) / batches,
        "batches": batches,
    }


def _segment(
    here: Ground, manager: _Manager, job: _Job, batches: int, skipped_batches: int, *, managed: bool
) -> Segment:
    with manager.attach_for_a_while() if managed else nullcontext():
        first = job.wait_for(job.last + 1 + (skipped_batches if managed else 0))
        cpu_s = driver_cpu_s(here.spark)
        last = job.wait_for(first.batch + batches)
        cpu_s = driver_cpu_s(here.spark) - cpu_s
        progresses = job.between(first.batch, last.batch)
    rows = sum(source.rows for progress in progresses for source in progress.sources)
    return Segment(managed, last.batch - first.batch, rows, last.ended_s - first.ended_s, cpu_s)


class _Job:
    """A query that runs without a manager until one is attached."""

    def __init__(self, query: ManagedQuery, topic: EndlessTopic | None) -> None:
        self._query, self._topic = query, topic
        query.start(Deadline.after(LONGEST_S))
        assert query.query is not None
        self._progress = handle_of(query.query, NAME, 0.0).recent_progress
        self.wait_for(0)

    def fill(self) -> None:
        """Write enough rows for the next batches of the job. The experiment source always has enough."""
        if self._topic is not None:
            (source,) = self.wait_for(self.last).sources
            self._topic.fill(round(source.end))

    def stop(self) -> None:
        """Cancelling a batch of a thousand tasks may take longer than the usual time limit."""
        if not Deadline.after(LONGEST_S).wait_until(self._try_to_stop):
            raise HomeostatError(f"the query did not stop within {LONGEST_S:.0f} s", where="bench overhead")

    def _try_to_stop(self) -> bool:
        try:
            self._query.stop()
        except QueryError:
            return False
        return True

    @property
    def last(self) -> int:
        """The number of the latest batch that has ended."""
        return self._query.batches()

    def wait_for(self, batch: int) -> Progress:
        """Waits until that batch has ended."""
        if not Deadline.after(LONGEST_S).wait_until(lambda: self.last >= batch or not self._query.active):
            raise HomeostatError(f"batch {batch} did not end within {LONGEST_S:.0f} s", where="bench overhead")
        if not self._query.active:
            raise HomeostatError("the query ended unexpectedly", where="bench overhead")
        return self.between(batch - 1, batch)[0]

    def between(self, after: int, last: int) -> list[Progress]:
        """The batches after `after`, up to and including `last`; the latest comes first."""
        newest_first = map(read_progress, self._progress())
        return [progress for progress in takewhile(lambda p: p.batch > after, newest_first) if progress.batch <= last]


@contextmanager
def _job(
    here: Ground, topic: EndlessTopic | None, name: str, partitions: int, rows: int, work_ms: float
) -> Iterator[_Job]:
    directory = here.directory / name
    (directory / "control").mkdir(parents=True)
    place: dict[str, Any] = {} if topic is None else {"servers": topic.servers, "topic": TOPIC}
    spec = specification(PROFILE, directory / "ledger", wait_ms=work_ms, burn=True, **place)
    job = _Job(_query(here.spark, directory, spec, partitions, rows), topic)
    try:
        yield job
    finally:
        job.stop()


def _query(spark: SparkSession, directory: Path, spec: WordCount, partitions: int, rows: int) -> ManagedQuery:
    pipeline = pipeline_of(spec)
    values: dict[Knob, Value] = {
        Knob(SOURCE_PARTITIONS, NAME): partitions,
        Knob(STATE_PARTITIONS, NAME): STATE,
        Knob(ROWS_PER_TRIGGER, NAME): rows,
        Knob(TRIGGER_S, NAME): 0.0,
    }

    def build(knobs: Any) -> Any:
        return pipeline.build(Context(spark, NAME, knobs, directory, directory / "control" / f"{NAME}.json"))

    return ManagedQuery(spark, NAME, build, directory / "checkpoint", values)


class _Manager:
    """The manager as a user would attach it. It may act but has no reason to: the executors are at their limit."""

    def __init__(self, here: Ground) -> None:
        self._spark, self._directory = here.spark, here.directory / "manager"
        self._directory.mkdir()
        self._store = self._directory / "log.sqlite"
        self._config = self._directory / "homeostat.toml"
        self._config.write_text(f'policy = "provisioning"\nmode = "regulate"\nstore = "{self._store}"\n')

    @contextmanager
    def attach_for_a_while(self) -> Iterator[None]:
        attachment = attach(self._spark, config=self._config, directory=self._directory)
        try:
            if not Deadline.after(LONGEST_S).wait_until(lambda: attachment.running):
                raise HomeostatError("the manager did not start", where="bench overhead")
            yield
        finally:
            attachment.stop()

    def count_records(self, kind: str) -> int:
        store = SqliteStore(self._store)
        try:
            return sum(run.counts.get(kind, 0) for run in store.runs())
        finally:
            store.close()


def driver_cpu_s(spark: SparkSession) -> float:
    """CPU time that this process, Spark's driver and all that it started have used so far."""
    import psutil

    jvm: Any = spark.sparkContext._jvm
    driver = psutil.Process(int(jvm.java.lang.ProcessHandle.current().pid()))
    cpu_s = time.process_time()
    for process in (driver, *driver.children(recursive=True)):
        try:
            cpu_s += sum(process.cpu_times()[:4])  # its own, and that of its children that have ended
        except psutil.NoSuchProcess:
            continue
    return cpu_s
