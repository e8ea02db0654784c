"""What Homeostat can observe and change in a given Spark application, and why it cannot do the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from homeostat.checkpoint import rescale
from homeostat.core.configuration import (
    ASYNC_PROGRESS,
    CHANGELOG_CHECKPOINTING,
    EXECUTORS_KNOB,
    PARALLELISM,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    SPREAD,
    STATE_PARTITIONS,
    SWITCHES,
    TRIGGER_S,
    Capabilities,
    Knob,
    KnobSpec,
)
from homeostat.spark.act.evidence import NO_EVIDENCE, Evidence
from homeostat.spark.act.live_knobs import LIVE_KINDS
from homeostat.spark.act.switches import async_refusal
from homeostat.spark_release import release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeostat.spark.act.managed_query import ManagedQuery

SENSING_SINCE = (3, 5)
# Seconds until an executor is useful, and until a query is back: measured on a small cluster.
EXECUTOR_S, RESTART_S, REPLACE_S = 10.0, 10.0, 20.0
_MOST_EXECUTORS = 1000  # more than one driver can coordinate well
_UNLIMITED = 2**31 - 1  # the default of spark.dynamicAllocation.maxExecutors
_NO_STATE = "the query has no state, or has finished no batch yet"
_WORDS = {
    PARALLELISM: "parallelism of named steps",
    SPREAD: "spread of hot keys",
    SOURCE_PARTITIONS: "source partitions",
    **LIVE_KINDS,
    CHANGELOG_CHECKPOINTING: "changelog checkpointing",
    ASYNC_PROGRESS: "asynchronous progress tracking",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the table that `doctor` and `status` print.

    `can` means that it is possible in principle, and `seen` that it has worked in this run.
    """

    what: str
    can: bool
    reason: str
    seen: bool = False


@dataclass(frozen=True, slots=True)
class Findings:
    capabilities: Capabilities
    table: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where an application runs. `room` is how many executors the cluster can hold, None if unknown. With `hands_off`
    Spark decides how many there are."""

    version: str
    master: str = ""
    connect: bool = False
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
        """The cluster manager; empty in local mode."""
        if self.master.startswith(("spark://", "local-cluster")):
            return "standalone"
        if self.master.startswith("k8s://"):
            return "Kubernetes"
        return "YARN" if self.master.startswith("yarn") else ""


def judge(here: Surroundings, queries: Sequence[ManagedQuery] = (), evidence: Evidence = NO_EVIDENCE) -> Findings:
    """What Homeostat can do here. The knobs of a query are those for which it has values."""
    knobs: dict[Knob, KnobSpec] = {}
    table = list(_sensing(here, evidence))
    steerable = _executors(here)
    table.append(_tried(steerable, EXECUTORS_KNOB, evidence))
    count = max(1, here.executors)
    maximum, why = _most(here)
    if steerable.can:
        knobs[EXECUTORS_KNOB] = KnobSpec(1, max(count, maximum), apply_s=EXECUTOR_S, cost=1.0)
        # This is a limit, so there is nothing to observe.
        table.append(Finding("maximum number of executors", True, f"{maximum}: {why}", seen=True))
    else:
        knobs[EXECUTORS_KNOB] = KnobSpec(count, count, cost=1.0)
    failed = evidence.replace_failure
    failure = f"{steerable.reason}; the last attempt failed: {failed}" if failed else ""
    reason = failure or steerable.reason
    table.append(Finding("replace a slow executor", steerable.can, reason, evidence.replaced and not failure))
    table.append(
        Finding(
            "avoid a bad host",
            steerable.can,
            "by requesting more executors than needed and keeping those on other hosts"
            if steerable.can
            else steerable.reason,
        )
    )
    for query in queries:
        table.extend(_query(here, query, knobs, evidence))
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
    executors = inner.statusStore().executorList(True).iterator()
    while executors.hasNext():
        yield executors.next()


def _sensing(here: Surroundings, evidence: Evidence) -> Iterator[Finding]:
    progress, executors, tasks = "progress of queries", "executors", "stages and tasks of batches"
    if here.connect or here.release < SENSING_SINCE:
        hidden = "Spark Connect hides the driver; use `homeostat watch` on its web UI"
        for what in (progress, executors, tasks):
            yield Finding(what, False, hidden if here.connect else _requires(SENSING_SINCE, here))
        return
    yield Finding(progress, True, f"Spark {here.version}", evidence.progress)
    missing = f": {evidence.errors}" if evidence.errors else ""
    ways = f"from {evidence.way}" if evidence.way else "from the driver's status store, or else its REST API"
    if evidence.lacks_tasks and not evidence.executors:
        yield Finding(executors, False, f"unknown so far{missing}")
    else:
        yield Finding(executors, True, ways, evidence.executors)
    if evidence.lacks_tasks:
        yield Finding(tasks, False, f"unknown for the latest batches{missing}")
    else:
        yield Finding(tasks, True, ways, evidence.tasks)


def _tried(finding: Finding, knob: Knob, evidence: Evidence) -> Finding:
    """Add the result of the attempts in this run."""
    if not finding.can:
        return finding
    if why := evidence.failed.get(knob):
        return replace(finding, reason=f"{finding.reason}; the last attempt failed: {why}")
    return replace(finding, seen=knob in evidence.changed)


def _requires(since: tuple[int, ...], here: Surroundings) -> str:
    return f"requires Spark {'.'.join(map(str, since))} or newer; this is {here.version}"


def _executors(here: Surroundings) -> Finding:
    what = "change the number of executors"
    if here.connect:
        return Finding(what, False, "Spark Connect hides the driver's scheduler")
    if here.release < SENSING_SINCE:
        return Finding(what, False, _requires(SENSING_SINCE, here))
    if not here.coarse or not here.manager:
        return Finding(what, False, f"{here.master or 'this master'} runs everything in the driver's process")
    if here.hands_off:
        return Finding(what, False, "Spark's dynamic allocation controls them")
    aside = ", instead of Spark's dynamic allocation" if here.allocates else ""
    doubt = "" if here.manager == "standalone" else ", not verified"
    return Finding(what, True, f"{here.manager}{doubt}{aside}")


def _most(here: Surroundings) -> tuple[int, str]:
    limits = [
        (
            _MOST_EXECUTORS,
            "the size of the cluster is unknown; the number of executors grows until the cluster grants no more",
        )
    ]
    if here.room is not None:
        limits.append((here.room, "the capacity of the cluster's workers"))
    if here.cores_max is not None:
        limits.append((here.cores_max // here.executor_cores, f"spark.cores.max = {here.cores_max}"))
    if here.executors_max is not None:
        limits.append((here.executors_max, "spark.dynamicAllocation.maxExecutors"))
    return min(limits)


def _query(
    here: Surroundings, query: ManagedQuery, knobs: dict[Knob, KnobSpec], evidence: Evidence
) -> Iterator[Finding]:
    for knob in query.set_by_application:
        words = f"{query.values[knob]:,}, set by the application; Homeostat does not change it"
        yield Finding(f"{query.name}: {_WORDS[knob.kind]}", False, words)
    if query.attached:
        yield from _within_bounds(query, knobs)
    if not query.restartable:
        yield Finding(f"{query.name}: changes that need a restart", False, "attached queries cannot be restarted")
        return
    state = _rescale(here, query)
    yield _tried(state, Knob(STATE_PARTITIONS, query.name), evidence)
    if state.can:
        knobs[Knob(STATE_PARTITIONS, query.name)] = KnobSpec(1, 1000, live=False, apply_s=query.rescale_s)
    settled = {knob.kind for knob in query.set_by_application} | (set(LIVE_KINDS) if query.attached else set())
    for kind, words in _WORDS.items():
        if kind in settled:
            continue
        if kind in SWITCHES and (reason := _switch_refusal(here, query, kind)):
            yield Finding(f"{query.name}: {words}", False, reason)
            continue
        own_knobs = [knob for knob in query.values if knob.kind == kind]
        fixed = query.live.refusal(kind) if kind in LIVE_KINDS and own_knobs else "."
        live = not fixed
        for knob in own_knobs:
            knobs[knob] = replace(_spec(kind, live), promise=query.longest_trigger_s if kind == TRIGGER_S else None)
        how = "without a restart" if live else "with a restart from the checkpoint"
        how += f", because {fixed}" if kind in LIVE_KINDS and not live else ""
        missing = "the application sets it itself" if kind in SWITCHES else "the application does not use it"
        line = Finding(f"{query.name}: {words}", bool(own_knobs), how if own_knobs else missing)
        findings = [each for knob in own_knobs for each in (_tried(line, knob, evidence),) if each != line]
        yield next(iter(sorted(findings, key=lambda each: each.seen)), line)  # a failed one is more informative


def _within_bounds(query: ManagedQuery, knobs: dict[Knob, KnobSpec]) -> Iterator[Finding]:
    """What the user allows in an attached application. The present value is allowed in any case."""
    for kind, (low, high) in query.bounds.items():
        knob = Knob(kind, query.name)
        if reason := query.live.refusal(kind):
            yield Finding(f"{query.name}: {_WORDS[kind]}", False, reason)
            continue
        now = query.values.get(knob, low)
        knobs[knob] = KnobSpec(min(low, now), max(high, now), live=True)
        yield Finding(f"{query.name}: {_WORDS[kind]}", True, f"without a restart, from {low:,g} to {high:,g}")


def _spec(kind: str, live: bool) -> KnobSpec:
    apply_s = 0.0 if live else RESTART_S
    if kind in SWITCHES:
        return KnobSpec(0, 1, live=live, apply_s=apply_s)
    if kind == TRIGGER_S:
        return KnobSpec(0.0, 3600.0, live=live, apply_s=apply_s)
    return KnobSpec(1, 10**9 if kind == ROWS_PER_TRIGGER else 1000, live=live, apply_s=apply_s)


def _switch_refusal(here: Surroundings, query: ManagedQuery, kind: str) -> str:
    """Why this setting cannot be switched for the query; empty if it can."""
    if kind == ASYNC_PROGRESS:
        return "Spark allows it only for queries without state" if query.stateful else async_refusal(query.query)
    if not query.stateful:
        return _NO_STATE
    return "" if here.rocksdb else "only RocksDB has changelogs"


def _rescale(here: Surroundings, query: ManagedQuery) -> Finding:
    what = f"{query.name}: state partitions"
    if here.release < rescale.SINCE:
        return Finding(what, False, _requires(rescale.SINCE, here))
    if not here.rocksdb:
        return Finding(what, False, "only RocksDB state can be repartitioned")
    if not query.stateful:
        return Finding(what, False, _NO_STATE)
    if reason := query.why_fixed(here.version):
        return Finding(what, False, reason)
    return Finding(what, True, "with a restart from the checkpoint")
