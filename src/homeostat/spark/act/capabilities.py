"""What can be sensed and changed in a given Spark application, and why the rest cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from homeostat.checkpoint import rescale
from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    PARALLELISM,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    SPREAD,
    STATE_PARTITIONS,
    TRIGGER_S,
    Capabilities,
    Knob,
    KnobSpec,
)
from homeostat.spark_release import release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeostat.spark.act.managed_query import ManagedQuery

SENSING_SINCE = (3, 5)
# Seconds until an executor is useful, and until a query is back, as seen on a small cluster.
EXECUTOR_S, RESTART_S, REPLACE_S = 10.0, 10.0, 20.0
_MOST_EXECUTORS = 1000
_UNLIMITED = 2**31 - 1
_WORDS = {
    PARALLELISM: "parallelism of named steps",
    SPREAD: "spread of hot keys",
    SOURCE_PARTITIONS: "source partitions",
    ROWS_PER_TRIGGER: "rows per trigger",
    TRIGGER_S: "trigger interval",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table that `doctor` and `status` print."""

    what: str
    can: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Findings:
    capabilities: Capabilities
    table: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where an application runs. `room` is how many executors the cluster can hold, None if nobody knows; `hands_off`
    leaves them to Spark."""

    version: str
    master: str = ""
    connect: bool = False
    ui: bool = True
    coarse: bool = True
    executors: int = 1
    executor_cores: int = 1
    cores_max: int | None = None
    executors_max: int | None = None
    allocates: bool = False
    rocksdb: bool = True
    room: int | None = None
    hands_off: bool = False

    @property
    def release(self) -> tuple[int, ...]:
        return release(self.version)

    @property
    def manager(self) -> str:
        """Who hands out executors; empty in one process that is driver and executor at once."""
        if self.master.startswith(("spark://", "local-cluster")):
            return "standalone"
        if self.master.startswith("k8s://"):
            return "Kubernetes"
        return "YARN" if self.master.startswith("yarn") else ""


def judge(here: Surroundings, queries: Sequence[ManagedQuery] = ()) -> Findings:
    """What can be done here. Of a query's knobs those that it has values for are offered."""
    knobs: dict[Knob, KnobSpec] = {}
    table = list(_sensing(here))
    steerable = _executors(here)
    table.append(steerable)
    count = max(1, here.executors)
    maximum, why = _most(here)
    if steerable.can:
        knobs[EXECUTORS_KNOB] = KnobSpec(1, max(count, maximum), apply_s=EXECUTOR_S, cost=1.0)
        table.append(Finding("most executors", True, f"{maximum}: {why}"))
    else:
        knobs[EXECUTORS_KNOB] = KnobSpec(count, count, cost=1.0)
    table.append(Finding("replace a slow executor", steerable.can, steerable.reason))
    table.append(
        Finding(
            "keep off a bad host",
            steerable.can,
            "only by asking for more executors than needed and keeping those elsewhere"
            if steerable.can
            else steerable.reason,
        )
    )
    for query in queries:
        table.extend(_query(here, query, knobs))
    notes = {finding.what: finding.reason for finding in table if not finding.can}
    capabilities = Capabilities(knobs, can_replace=steerable.can, replace_s=REPLACE_S, notes=notes)
    return Findings(capabilities, tuple(table))


def look_around(spark: SparkSession, *, room: int | None = None) -> Surroundings:
    version = str(spark.version)
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return Surroundings(version, connect=True)
    context: Any = spark.sparkContext
    conf, inner = context.getConf(), context._jsc.sc()
    backend = inner.schedulerBackend()
    coarse = hasattr(backend, "getExecutorIds") and context.master.partition("[")[0] != "local"
    infos = [info for info in _executor_infos(inner) if info.id() != "driver"] if coarse else []
    cores = max((int(info.totalCores()) for info in infos), default=int(conf.get("spark.executor.cores", "1")))
    limit = conf.get("spark.dynamicAllocation.maxExecutors", "")
    return Surroundings(
        version,
        master=context.master,
        ui=context.uiWebUrl is not None,
        coarse=coarse,
        executors=len(infos),
        executor_cores=max(1, cores),
        cores_max=int(conf.get("spark.cores.max", "0")) or None,
        executors_max=int(limit) if limit and int(limit) < _UNLIMITED else None,
        allocates=bool(inner.executorAllocationManager().isDefined()),
        rocksdb="RocksDB" in str(spark.conf.get("spark.sql.streaming.stateStore.providerClass")),
        room=room,
    )


def _executor_infos(inner: Any) -> Iterator[Any]:
    listed = inner.statusStore().executorList(True).iterator()
    while listed.hasNext():
        yield listed.next()


def _sensing(here: Surroundings) -> Iterator[Finding]:
    progress, rest = "progress of queries", "tasks, stages and executors"
    if here.connect:
        for what in (progress, rest):
            yield Finding(what, False, "through Spark Connect the driver cannot be reached: `homeostat watch` its page")
        return
    known = here.release >= SENSING_SINCE
    needed = ".".join(map(str, SENSING_SINCE))
    yield Finding(progress, known, f"Spark {here.version}" + ("" if known else f", needed is {needed}"))
    if here.ui:
        yield Finding(rest, known, "from the driver's REST API")
    else:
        yield Finding(rest, False, "the driver's REST API is off: spark.ui.enabled is false")


def _executors(here: Surroundings) -> Finding:
    what = "executors up and down"
    if here.connect:
        return Finding(what, False, "through Spark Connect the driver's scheduler cannot be reached")
    if here.release < SENSING_SINCE:
        return Finding(what, False, f"Spark {here.version}, needed is {'.'.join(map(str, SENSING_SINCE))}")
    if not here.coarse or not here.manager:
        return Finding(what, False, f"{here.master or 'this master'} runs everything in the driver's process")
    if here.hands_off:
        return Finding(what, False, "they are left to Spark's own dynamic allocation")
    aside = ", in place of Spark's own dynamic allocation" if here.allocates else ""
    verified = "" if here.manager == "standalone" else ", not verified"
    return Finding(what, True, f"{here.manager}{verified}{aside}")


def _most(here: Surroundings) -> tuple[int, str]:
    limits = [(_MOST_EXECUTORS, "nobody knows how many the cluster can hold: growth ends where it gives no more")]
    if here.room is not None:
        limits.append((here.room, "what the cluster's workers can hold"))
    if here.cores_max is not None:
        limits.append((here.cores_max // here.executor_cores, f"spark.cores.max = {here.cores_max}"))
    if here.executors_max is not None:
        limits.append((here.executors_max, "spark.dynamicAllocation.maxExecutors"))
    return min(limits)


def _query(here: Surroundings, query: ManagedQuery, knobs: dict[Knob, KnobSpec]) -> Iterator[Finding]:
    for knob in query.own:
        words = f"{query.values[knob]:,}, as the application sets it itself: it is reported, never set"
        yield Finding(f"{query.name}: {_WORDS[knob.kind]}", False, words)
    if not query.restartable:
        yield Finding(f"{query.name}: all that needs a restart", False, "it was handed over running: live actions only")
        return
    state = _rescale(here, query)
    yield state
    if state.can:
        knobs[Knob(STATE_PARTITIONS, query.name)] = KnobSpec(1, 1000, live=False, apply_s=query.rescale_s)
    for kind, words in _WORDS.items():
        if kind in {knob.kind for knob in query.own}:
            continue
        mine = [knob for knob in query.values if knob.kind == kind]
        live = kind == ROWS_PER_TRIGGER and query.listens
        for knob in mine:
            knobs[knob] = _spec(kind, live)
        how = "without a restart" if live else "by a restart from the checkpoint"
        yield Finding(f"{query.name}: {words}", bool(mine), how if mine else "the application does not ask for it")


def _spec(kind: str, live: bool) -> KnobSpec:
    apply_s = 0.0 if live else RESTART_S
    if kind == TRIGGER_S:
        return KnobSpec(0.0, 3600.0, live=live, apply_s=apply_s)
    return KnobSpec(1, 10**9 if kind == ROWS_PER_TRIGGER else 1000, live=live, apply_s=apply_s)


def _rescale(here: Surroundings, query: ManagedQuery) -> Finding:
    what = f"{query.name}: state partitions"
    if here.release < rescale.SINCE:
        return Finding(what, False, f"Spark {here.version}, needed is {'.'.join(map(str, rescale.SINCE))}")
    if not here.rocksdb:
        return Finding(what, False, "only the state of the RocksDB provider can be repartitioned")
    if not query.stateful:
        return Finding(what, False, "it has no state, or has done no batch yet")
    if reason := query.why_fixed(here.version):
        return Finding(what, False, reason)
    return Finding(what, True, "by a restart from the checkpoint")
