"""Records runs on real Spark: starts the queries, injects the faults, and writes logs and labels."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from homeostat.core.errors import HomeostatError
from homeostat.lab.corpus.effects import Span, effect_of, logged_run, mean_seconds
from homeostat.lab.corpus.faults import FAULTS, WORKING, End, Scene
from homeostat.lab.corpus.file_feed import FileFeed
from homeostat.lab.corpus.host_use import HostUse
from homeostat.lab.corpus.jobs import INPUT, JOBS, Shape, Workplace, start
from homeostat.lab.corpus.labels import LABELS, InjectedFault, Label, read_labels, write_labels
from homeostat.lab.corpus.plan import LENGTH_S, Case, PlannedFault, PlannedRun, SessionPlan, by_session
from homeostat.lab.corpus.service import Service
from homeostat.lab.corpus.session_log import SessionLog
from homeostat.lab.corpus.shrinking import REASON_CHARACTERS, kept_events, write_log
from homeostat.lab.corpus.storage import SlowStorage
from homeostat.lab.corpus.switches import Switches
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.executors import Executors
from homeostat.spark.cluster.embedded import EmbeddedCluster
from homeostat.spark.cluster.session import build_session, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS, CORES = 3, 4
UP_S = 180.0
LOOK_AGAIN_S = 0.1
FIRST_BATCHES_S = (
    120.0  # a run without a batch by then is given up; two batches at the start of a session took up to 90 s
)
WARM_BATCHES = 2
LEAST_BATCHES = 6  # a choice: the first three warm up, and one more is no comparison
ATTEMPTS = 2  # on a busy machine a Python worker sometimes starts too late for Spark
SUFFIX = ".zstd"
# A row that fails on each attempt, or an executor that dies in each batch, must not end the query, because the
# recording would end with it.
ENDURING = {
    "spark.task.maxFailures": "12",
    "spark.stage.maxConsecutiveAttempts": "20",
    "spark.python.authenticate.socketTimeout": "60s",
}
# One plain file, which can be read and split while Spark writes it.
PLAIN_LOG = {
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.logStageExecutorMetrics": "true",
}


class RecordingError(HomeostatError):
    """A run did not take place as planned."""


@dataclass(frozen=True, slots=True)
class Acted:
    """When a fault really began and ended."""

    fault: PlannedFault
    at_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class TakenRun:
    """A run that took place. `query_run` is Spark's id for it."""

    planned: PlannedRun
    query_run: str
    began_s: float
    ended_s: float
    acted: tuple[Acted, ...]
    others_cpu: float


def record(
    out: Path, runs: Sequence[PlannedRun], tell: Callable[[str], None], length_s: float = LENGTH_S
) -> list[Label]:
    """Record the runs into a directory. A run that is there already is replaced; the others stay."""
    out.mkdir(parents=True, exist_ok=True)
    recorded: list[Label] = []
    with TemporaryDirectory(prefix="homeostat-corpus-") as path, Service() as service:
        directory = Path(path)
        with (
            SlowStorage(directory / "storage") as storage,
            EmbeddedCluster(directory / "cluster", workers=WORKERS, cores=CORES) as cluster,
        ):
            for session, planned in by_session(runs):
                tell(f"{session.name}: {len(planned)} runs on {session.executors} executors")
                log = directory / f"events-{session.name}"
                with _session(cluster, directory / session.name, log, session) as spark:
                    stage = Stage(spark, directory / session.name, service, storage, tell, length_s)
                    archive = Archive(out, session, str(spark.version), SessionLog(log), tell)
                    labels = map(archive.file_away, stage.take(planned))
                    recorded += [label for label in labels if label is not None]
                shutil.rmtree(directory / session.name, ignore_errors=True)
    return recorded


@contextmanager
def _session(cluster: EmbeddedCluster, directory: Path, log: Path, plan: SessionPlan) -> Iterator[SparkSession]:
    from homeostat.lab.corpus.held_source import register

    conf = spark_conf(
        master=cluster.master_url,
        app_name="corpus",
        executors=plan.executors,
        directory=directory,
        executor_memory=plan.memory,
        event_log=log,
        extra={"spark.dynamicAllocation.maxExecutors": str(plan.executors), **ENDURING, **PLAIN_LOG, **plan.settings},
    )
    spark = build_session(conf)
    try:
        executors = Executors(spark)
        executors.take_over(plan.executors)
        executors.grow(plan.executors, Deadline.after(UP_S))
        register(spark)
        yield spark
    finally:
        spark.stop()


class Stage:
    """Takes the runs of one session, one after the other."""

    def __init__(
        self,
        spark: SparkSession,
        directory: Path,
        service: Service,
        storage: SlowStorage,
        tell: Callable[[str], None],
        length_s: float,
    ) -> None:
        self._spark, self._directory, self._service, self._storage = spark, directory, service, storage
        self._tell, self._length_s = tell, length_s

    def take(self, planned: Sequence[PlannedRun]) -> Iterator[TakenRun]:
        """Take the runs, and yield those that took place. Before the first, a query that is not recorded warms up the
        executors."""
        if planned:
            self._attempt(PlannedRun("warm-up", Case(planned[0].case.job), (), 1), 0.0)
        for run in planned:
            attempts = (self._attempt(run, self._length_s) for _ in range(ATTEMPTS))
            if (taken := next(filter(None, attempts), None)) is not None:
                yield taken

    def _attempt(self, run: PlannedRun, length_s: float) -> TakenRun | None:
        from pyspark.errors import PySparkException

        began = time.monotonic()
        try:
            taken = self._take(run, length_s)
        except (RecordingError, PySparkException) as error:
            self._tell(f"{run.name} failed: {str(error)[:REASON_CHARACTERS]}")
            return None
        self._tell(f"{run.name}: {time.monotonic() - began:.0f} s")
        return taken

    def _take(self, run: PlannedRun, length_s: float) -> TakenRun:
        job, directory = JOBS[run.case.job], self._directory / run.name
        directory.mkdir(parents=True)
        shape = _shape(job.shape, run)
        place = Workplace(self._spark, directory, shape, Switches(directory / "on"), self._service.port, run.seed)
        with ExitStack() as stack:
            feed = None
            if job.name == "files":
                feed = stack.enter_context(FileFeed(directory / INPUT / "new", shape.rate_per_s, shape.rows_per_file))
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            query = start(place, job, run.name)
            stack.callback(query.stop)
            application = str(self._spark.sparkContext.applicationId)
            scene = Scene(place, self._service, query, feed, self._storage.switches, application)
            self._await_batches(query, WARM_BATCHES)
            use, began_s = HostUse(), time.time()
            acted = _act(scene, run.faults, began_s, length_s)
            others_cpu = use.others()
        return TakenRun(run, str(query.runId), began_s, time.time(), acted, others_cpu)

    def _await_batches(self, query: Any, count: int) -> None:
        deadline = time.monotonic() + FIRST_BATCHES_S
        while sum(progress["numInputRows"] > 0 for progress in query.recentProgress) < count:
            _require_running(query)
            if time.monotonic() > deadline:
                raise RecordingError(f"no batch within {FIRST_BATCHES_S:.0f} s", where="corpus")
            time.sleep(LOOK_AGAIN_S)


def _require_running(query: Any) -> None:
    if not query.isActive:
        raise RecordingError(f"the query ended: {str(query.exception())[:REASON_CHARACTERS]}", where="corpus")


def _shape(shape: Shape, run: PlannedRun) -> Shape:
    for fault in run.faults:
        shape = FAULTS[fault.kind].shape(shape, fault.strength)
    return shape


def _act(scene: Scene, faults: Sequence[PlannedFault], began_s: float, length_s: float) -> tuple[Acted, ...]:
    """Begin and end each fault at its time, until the run is over."""
    scale = length_s / LENGTH_S
    open_faults: dict[str, tuple[float, End]] = {}
    acted: dict[str, Acted] = {}

    def close(fault: PlannedFault) -> None:
        at_s, end = open_faults.pop(fault.kind)
        acted[fault.kind] = Acted(fault, at_s, time.time())
        end()

    try:
        while (now_s := time.time() - began_s) < length_s:
            _require_running(scene.query)
            for fault in faults:
                if fault.kind in open_faults and now_s >= fault.until_s * scale:
                    close(fault)
                elif fault.kind not in open_faults and fault.kind not in acted and now_s >= fault.at_s * scale:
                    open_faults[fault.kind] = (time.time(), FAULTS[fault.kind].begin(scene, fault.strength))
            time.sleep(LOOK_AGAIN_S)
    finally:
        for fault in faults:
            if fault.kind in open_faults:
                close(fault)
    return tuple(acted[fault.kind] for fault in faults)


class Archive:
    """The logs and labels of the runs of one session, in the directory of the corpus."""

    def __init__(
        self, out: Path, session: SessionPlan, version: str, log: SessionLog, tell: Callable[[str], None]
    ) -> None:
        self._out, self._session, self._version, self._log, self._tell = out, session, version, log, tell

    def file_away(self, run: TakenRun) -> Label | None:
        """Write the log and the label of a run, and return the label; None if the run had too few batches."""
        events = self._log.events_of(run.query_run)
        if (count := len(logged_run(events).batches)) < LEAST_BATCHES:
            self._tell(f"{run.planned.name} is left out: it has only {count} batches")
            return None
        write_log(self._out / f"{run.planned.name}{SUFFIX}", events)
        others = [label for label in self._labels() if label.run != run.planned.name]
        label = _label(run, self._session, self._version, events, self._usual_batch_s(others, run))
        write_labels(self._out, [*others, label])
        return label

    def _labels(self) -> tuple[Label, ...]:
        return read_labels(self._out) if (self._out / LABELS).exists() else ()

    def _usual_batch_s(self, labels: Sequence[Label], run: TakenRun) -> float:
        """The mean duration of a batch in the clean runs of the job; 0 if there is none."""
        clean = [label for label in labels if label.clean and label.job == run.planned.case.job]
        logged = [logged_run(kept_events(self._out / label.log)) for label in clean]
        return mean_seconds([batch for each in logged for batch in each.between(0.0, float("inf"))])


def _label(
    run: TakenRun, session: SessionPlan, version: str, events: Sequence[Mapping[str, Any]], usual_s: float
) -> Label:
    planned, job = run.planned, JOBS[run.planned.case.job]
    logged = logged_run(events)
    faults = []
    for acted in run.acted:
        kind, fault = FAULTS[acted.fault.kind], acted.fault
        at_s = logged.batches[0].started_s if kind.from_start else acted.at_s
        earlier = logged.between(0.0, min(each.at_s for each in run.acted)) if fault.at_s > 0 else []
        before_s = mean_seconds(earlier) or usual_s
        during = logged.between(at_s, acted.until_s)
        faults.append(
            InjectedFault(
                cause=kind.cause,
                component=job.working if kind.component == WORKING else kind.component,
                at_batch=during[0].batch if during else logged.batches[-1].batch,
                until_batch=during[-1].batch if during else logged.batches[-1].batch,
                at_s=round(at_s, 3),
                until_s=round(acted.until_s, 3),
                strength=fault.strength,
                effect=effect_of(kind.measure, logged, Span(at_s, acted.until_s, session.executors), before_s),
                measure=kind.measure,
                before_s=round(before_s, 3),
                during_s=round(mean_seconds(during), 3),
            )
        )
    return Label(
        run=planned.name,
        log=f"{planned.name}{SUFFIX}",
        job=job.name,
        spark_version=version,
        trigger_s=job.shape.trigger_s,
        executors=session.executors,
        slots=session.executors,
        batches=len(logged.batches),
        began_s=round(run.began_s, 3),
        ended_s=round(run.ended_s, 3),
        others_cpu=round(run.others_cpu, 3),
        faults=tuple(faults),
        seed=planned.seed,
    )
