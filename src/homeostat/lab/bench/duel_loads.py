"""The loads of a duel: the last hours of a recorded trace, scaled to the cluster, with the hours before as history."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.core.stats import median
from homeostat.core.traffic import KEPT, MINUTE_S, Traffic
from homeostat.recorded_data.load import Load
from homeostat.sim.scenario.spec import (
    ComponentSpec,
    DataflowSpec,
    FaultSpec,
    MicrobatchSpec,
    Noise,
    Scenario,
    WorkloadSpec,
)
from homeostat.sim.workload import Workload

MICROBATCH, DATAFLOW = "microbatch", "dataflow"
ENGINES = (MICROBATCH, DATAFLOW)
# The rows that one executor or instance processes per second in the built-in application.
RATE_PER_S = 1_000.0
# Enough keys for an even hash, and enough tasks to run in full waves on clusters of most sizes.
KEYS, TASKS_PER_EXECUTOR = 100_000, 4
# The share of the largest cluster that the peak of the load needs: a static cluster of that size always keeps up.
PEAK_SHARE = 0.75
# The cluster starts with this many times the executors or instances that the first minutes need.
FIRST_ROOM = 1.5
NOISE = Noise(0.03, 0.5)
TRIGGER_S, START_S = 10.0, 60.0
# A trace needs at least this many values in the time that is simulated.
LEAST_VALUES = 30
_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class DuelLoad:
    """Rows per second at `times_s`, which begin at 0; the history ends there. All rates are shares of the peak."""

    name: str
    times_s: Array
    shares: Array
    history_times_s: Array
    history_shares: Array

    @property
    def duration_s(self) -> float:
        return float(self.times_s[-1])

    def workload(self, peak_per_s: float) -> WorkloadSpec:
        return _workload(self.times_s, peak_per_s * self.shares)

    def history(self, peak_per_s: float, seed: int) -> Traffic | None:
        """The load before the run, minute by minute, with noise of its own; None if the trace begins with the run."""
        minutes = math.floor(-float(self.history_times_s[0]) / MINUTE_S) if len(self.history_times_s) else 0
        minutes = min(minutes, KEPT)
        if minutes < 1:
            return None
        times_s, rates = self.history_times_s + minutes * MINUTE_S, peak_per_s * self.history_shares
        past = Workload(_workload(times_s[times_s >= 0], rates[times_s >= 0]), seed + 1_000)
        starts_s = (np.arange(minutes) * MINUTE_S).tolist()
        return Traffic(-minutes, tuple(past.rows_between(s, s + MINUTE_S) / MINUTE_S for s in starts_s))


def from_trace(load: Load, hours: float) -> DuelLoad:
    """The last `hours` of the trace; all of it if it is shorter. The peak is that of the one-minute means."""
    order = np.argsort(load.times_s, kind="stable")
    times_s, per_s = load.times_s[order], load.per_s[order]
    usable = np.isfinite(times_s) & np.isfinite(per_s) & np.concatenate([np.diff(times_s) > 0, [True]])
    times_s, per_s = times_s[usable], np.maximum(per_s[usable], 0.0)
    begin_s = times_s[-1] - hours * _HOUR_S
    first = int(np.searchsorted(times_s, begin_s - 1e-6)) if begin_s > times_s[0] else 0
    if len(times_s) - first < LEAST_VALUES:
        raise ConfigError(
            f"has {len(times_s) - first} values in the last {hours:g} hours; at least {LEAST_VALUES} are required",
            where=load.name,
            fix="simulate more hours with --hours, or give a finer trace",
        )
    span = max(1, round(MINUTE_S / median(np.diff(times_s))))
    means = np.convolve(per_s[first:], np.ones(span) / span, mode="valid")
    shares = per_s / max(float(means.max()), 1e-12)
    relative_s = times_s - times_s[first]
    return DuelLoad(load.name, relative_s[first:], shares[first:], relative_s[: first + 1], shares[: first + 1])


def built_in(engine: str, most: int) -> Scenario:
    """A keyed count that takes a millisecond per row: the application if no other is given."""
    if engine == MICROBATCH:
        tasks = TASKS_PER_EXECUTOR * most
        return Scenario(
            name="keyed count",
            title="keyed count",
            engine=MicrobatchSpec(
                trigger_s=TRIGGER_S, max_executors=most, executor_start_s=START_S, locality_wait_s=0.0
            ),
            duration_s=0.0,
            components=(
                ComponentSpec("lines", "source", parallelism=tasks, rate_per_s=20 * RATE_PER_S, task_s=0.005),
                ComponentSpec(
                    "count",
                    inputs=("lines",),
                    parallelism=tasks,
                    rate_per_s=RATE_PER_S,
                    keyed=True,
                    keys=KEYS,
                    task_s=0.005,
                ),
            ),
            workload=WorkloadSpec(),
            service_noise=NOISE,
        )
    return Scenario(
        name="keyed count",
        title="keyed count",
        engine=DataflowSpec(tick_s=TRIGGER_S, redeploy_s=30.0),
        duration_s=0.0,
        components=(
            ComponentSpec("lines", "source", parallelism=2, rate_per_s=20 * RATE_PER_S, maximum=most),
            ComponentSpec("count", inputs=("lines",), rate_per_s=RATE_PER_S, keyed=True, keys=KEYS, maximum=most),
        ),
        workload=WorkloadSpec(),
        service_noise=NOISE,
    )


def peak_per_s(application: Scenario, most: int) -> float:
    """The peak that needs `PEAK_SHARE` of the largest cluster, by the slowest component that the cluster runs."""
    rates = [1.0 / spec.rate_per_s for spec in application.components if spec.kind != "source"]
    sources = [1.0 / spec.rate_per_s for spec in application.components if spec.kind == "source"]
    engine = application.engine
    if not isinstance(engine, MicrobatchSpec):
        return PEAK_SHARE * most / max(rates or sources)
    # In micro-batches, the stages share the executors, and the driver's part of each interval is lost.
    for_rows = max(0.1, 1.0 - (engine.driver_s + engine.commit_s) / max(engine.trigger_s, 1.0))
    return PEAK_SHARE * most * engine.slots * for_rows / (sum(rates) + sum(sources))


def scenario(load: DuelLoad, application: Scenario, most: int, start: int | None, *, faulty: bool) -> Scenario:
    """The application under this load. `start`: executors (or instances) at the start; None: as the load needs."""
    peak = peak_per_s(application, most)
    first_share = float(load.shares[: max(1, len(load.shares) // 100)].max())
    first = start or min(most, max(1, math.ceil(FIRST_ROOM * PEAK_SHARE * most * first_share)))
    engine, components = application.engine, application.components
    if isinstance(engine, MicrobatchSpec):
        engine = replace(engine, executors=first, max_executors=most)
    else:
        components = tuple(c if c.kind == "source" else replace(c, parallelism=first) for c in components)
    return replace(
        application,
        name=load.name,
        title=load.name,
        engine=engine,
        components=components,
        duration_s=load.duration_s,
        workload=replace(load.workload(peak), noise=NOISE),
        faults=_faults(application, load.duration_s) if faulty else (),
    )


def _faults(application: Scenario, duration_s: float) -> tuple[FaultSpec, ...]:
    """A slow instance after a third of the time, for a tenth of it, and a crash after two thirds."""
    where = "" if isinstance(application.engine, MicrobatchSpec) else application.components[-1].name
    slow_until_s = (1.0 / 3.0 + 0.1) * duration_s
    return (
        FaultSpec("slow-instance", at_s=duration_s / 3.0, until_s=slow_until_s, component=where, factor=4.0),
        FaultSpec("crash", at_s=2.0 * duration_s / 3.0, component=where, instance=1),
    )


def _workload(times_s: Array, per_s: Array) -> WorkloadSpec:
    points = tuple(zip(times_s.tolist(), per_s.tolist(), strict=True))
    return WorkloadSpec("trace", trace=points, noise=NOISE)
