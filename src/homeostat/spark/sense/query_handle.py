"""What the sensors need from a running query, read inside the driver process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeostat.core.observation import NAN
from homeostat.spark.sense.declared_steps import NO_STEPS, DeclaredSteps
from homeostat.spark.sense.plan_graph import StageGraph, read_dot
from homeostat.spark.sense.progress import Json
from homeostat.spark.sense.source_formats import SourceOptions
from homeostat.spark.sense.source_offsets import sources_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_PROCESSING = "Processing new data"


def _no_plan() -> str:
    return ""


def _never_busy() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class QueryHandle:
    """One run of a query. `recent_progress` returns the progress reports that Spark still has, newest first; `plan` the
    physical plan of the latest batch as text; `busy` whether the query is working on a batch. `steps` are the names
    that its pipeline gave to steps. `checkpoint` is the location of its checkpoint."""

    name: str
    run_id: str
    trigger_s: float = NAN
    recent_progress: Callable[[], Iterable[Json]] = tuple
    plan: Callable[[], str] = _no_plan
    busy: Callable[[], bool] = _never_busy
    steps: DeclaredSteps = NO_STEPS
    sources: tuple[SourceOptions, ...] = ()
    checkpoint: str = ""


def handle_of(query: StreamingQuery, name: str, trigger_s: float, steps: DeclaredSteps = NO_STEPS) -> QueryHandle:
    """Create it once per run: looking up the sources in the plan takes several calls to the JVM."""
    return QueryHandle(
        name=name,
        run_id=str(query.runId),
        trigger_s=trigger_s,
        recent_progress=lambda: _newest_first(query),
        plan=lambda: str(query._jsq.explainInternal(False)),
        busy=lambda: _processes(query),
        steps=steps,
        sources=known_sources(query),
        checkpoint=_checkpoint(query),
    )


def _checkpoint(query: StreamingQuery) -> str:
    try:
        return str(query._jsq.streamingQuery().resolvedCheckpointRoot())
    except Exception:  # a private interface of Spark: without it the waiting files are unknown
        return ""


def _newest_first(query: StreamingQuery) -> Iterator[Json]:
    # Each report is a call to the JVM, so they are read one by one.
    for progress in reversed(list(query._jsq.recentProgress())):
        yield json.loads(progress.json())


def _processes(query: StreamingQuery) -> bool:
    status = query.status
    return bool(status["isTriggerActive"]) and status["message"] == _PROCESSING


def known_sources(query: StreamingQuery) -> tuple[SourceOptions, ...]:
    try:
        return sources_of(query)
    except Exception:  # a private interface of Spark: without it arrival is known only once per batch
        return ()


def stage_graphs(spark: SparkSession) -> Callable[[int], StageGraph]:
    """A function that reads the operators of a stage from the driver's JVM."""
    store = spark.sparkContext._jsc.sc().statusStore()
    drawing = spark.sparkContext._jvm.org.apache.spark.ui.scope.RDDOperationGraph  # type: ignore[union-attr]

    def read(stage: int) -> StageGraph:
        graph = store.operationGraphForStage(stage)
        return read_dot(str(drawing.makeDotFile(graph)), str(graph.incomingEdges().mkString(";")))

    return read


class Listener:
    """Receives every batch and every idle trigger. The callbacks must return at once: Spark waits for its listeners.

    PySpark's own listener makes a call to the JVM for each field of an event. This one makes one call, for its JSON.
    """

    def __init__(self, spark: SparkSession, progressed: Callable[[str], None], idled: Callable[[str], None]) -> None:
        self._spark, self._progressed, self._idled = spark, progressed, idled
        self._java: object = None

    def start(self) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        context = self._spark.sparkContext
        ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
        streaming = context._jvm.org.apache.spark.sql.streaming  # type: ignore[union-attr]
        self._java = streaming.PythonStreamingQueryListenerWrapper(self)
        self._spark.streams._jsqm.addListener(self._java)

    def stop(self) -> None:
        if self._java is not None:
            self._spark.streams._jsqm.removeListener(self._java)

    def onQueryStarted(self, event: object) -> None:  # noqa: N802
        """Nothing to do: queries are known through their handles."""

    def onQueryProgress(self, event: object) -> None:  # noqa: N802
        self._progressed(str(event.progress().json()))  # type: ignore[attr-defined]

    def onQueryIdle(self, event: object) -> None:  # noqa: N802
        self._idled(str(event.runId()))  # type: ignore[attr-defined]

    def onQueryTerminated(self, event: object) -> None:  # noqa: N802
        """Nothing to do."""

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
