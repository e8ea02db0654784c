"""Compares acting on a forecast with acting on measurements, under a load with days and spikes and equal noise.

The spikes come at the same minute every day, or move, or fail to come on some days, or are twice as high on some.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.core.policy_definition import Policy
from homeostat.core.traffic import MINUTE_S, Traffic
from homeostat.detectors.forecast_rise import RiseDetector
from homeostat.lab.bench.intervals import median_interval
from homeostat.models.forecast import Forecast
from homeostat.models.forecast.series import regular
from homeostat.policies import registry
from homeostat.recorded_data.load import Load
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import RunResult, simulate
from homeostat.sim.workload import Workload

AHEAD, REACTIVE, ORACLE = "ahead", "reactive", "oracle"
PEERS = ("hpa", "flink", "ds2", "dstream", "spark-dynamic-allocation", "static")
HISTORY_DAYS, DAYS = 6, 1
# The targets. Where spikes are not the same every day, acting ahead only has to be no worse than reacting.
MOST_VIOLATIONS, MOST_COST = 0.5, 1.05
SEED, SEEDS = 1, 3

_DAY_MINUTES = 1440
_NIGHT_PER_S, _PEAK_PER_S = 1_000.0, 5_000.0
_NOISE = Noise(0.03, 0.5)
# The same every day: (hour, minutes, factor on the load). One more spike a day cannot be foreseen.
_DAILY_SPIKES = ((9.0, 20, 1.6), (13.5, 15, 1.4), (20.0, 30, 1.8))
_CHANCE_SPIKE_MINUTES, _CHANCE_SPIKE = 15, 1.5
_EXECUTOR_START_S = 60.0


@dataclass(frozen=True, slots=True)
class Spikes:
    """How the daily spikes differ from day to day. Probabilities are those of each spike on each day."""

    name: str
    moved_minutes: float = 0.0  # standard deviation
    vanishing: float = 0.0
    doubled: float = 0.0  # twice the rows above the usual load

    @property
    def steady(self) -> bool:
        return not (self.moved_minutes or self.vanishing or self.doubled)


STEADY = Spikes("diurnal with spikes")
SPIKES = (
    STEADY,
    Spikes("spikes that move", moved_minutes=25.0),
    Spikes("spikes that vanish", vanishing=1.0 / 3.0),
    Spikes("spikes that double", doubled=1.0 / 3.0),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A load minute by minute. The run begins after the first `history_days`. `seed` determines its noise."""

    name: str
    per_s: Array
    history_days: int
    steady: bool = True
    seed: int = SEED

    @property
    def _history_minutes(self) -> int:
        return self.history_days * _DAY_MINUTES

    def scenario(self) -> Scenario:
        """A keyed count that takes a millisecond per row, on executors that need a minute to start."""
        first_per_s = float(self.per_s[self._history_minutes])
        return Scenario(
            name=self.name,
            title=self.name,
            engine=MicrobatchSpec(
                trigger_s=10.0,
                executors=math.ceil(1.5 * first_per_s / 1_000.0),
                max_executors=40,
                executor_start_s=_EXECUTOR_START_S,
                locality_wait_s=0.0,
            ),
            duration_s=(len(self.per_s) - self._history_minutes) * MINUTE_S,
            components=(
                ComponentSpec("lines", "source", parallelism=40, rate_per_s=20_000.0, task_s=0.005),
                ComponentSpec("count", inputs=("lines",), parallelism=40, rate_per_s=1_000.0, keyed=True, task_s=0.005),
            ),
            workload=_workload(self.per_s[self._history_minutes :]),
            service_noise=_NOISE,
        )

    def history(self, seed: int) -> Traffic:
        """The load of the days before the run, with noise of their own."""
        past = Workload(_workload(self.per_s[: self._history_minutes]), seed + 1_000)
        starts_s = np.arange(self._history_minutes) * MINUTE_S
        per_s = [past.rows_between(start_s, start_s + MINUTE_S) / MINUTE_S for start_s in starts_s.tolist()]
        return Traffic(-self._history_minutes, tuple(per_s))


def synthetic_case(days: int = DAYS, seed: int = SEED, spikes: Spikes = STEADY) -> Case:
    """Nights and days, three spikes that come every day, and one a day at a random time."""
    total = HISTORY_DAYS + days
    minutes = np.arange(total * _DAY_MINUTES)
    wave = 0.5 - 0.5 * np.cos(2.0 * math.pi * minutes / _DAY_MINUTES)
    per_s = _NIGHT_PER_S + (_PEAK_PER_S - _NIGHT_PER_S) * wave
    chance = np.random.default_rng(seed)
    changes = np.random.default_rng([seed, total])
    for day in range(total):
        foreseen = [_changed(spike, spikes, changes) for spike in _DAILY_SPIKES]
        unforeseen = (int(chance.integers(0, _DAY_MINUTES)), _CHANCE_SPIKE_MINUTES, _CHANCE_SPIKE)
        for start, length, factor in (*foreseen, unforeseen):
            begin = max(0, day * _DAY_MINUTES + start)
            per_s[begin : begin + length] *= factor
    return Case(spikes.name, per_s, HISTORY_DAYS, spikes.steady, seed)


def _changed(spike: tuple[float, int, float], spikes: Spikes, changes: np.random.Generator) -> tuple[int, int, float]:
    """A daily spike on one day: its minute, length and factor."""
    hour, length, factor = spike
    start = int(hour * 60) + round(float(changes.normal(0.0, 1.0)) * spikes.moved_minutes)
    fate = float(changes.random())
    if fate < spikes.vanishing:
        return start, 0, 1.0
    return start, length, 2.0 * factor - 1.0 if fate < spikes.doubled else factor


def from_trace(load: Load, days: int = DAYS, seed: int = SEED) -> Case:
    """The last days of a recorded load, with the days before them as history. Its peak is scaled to that of
    `synthetic_case`."""
    series = regular(load.times_s, load.per_s, horizon_s=MINUTE_S, most=1_000_000)
    positions = np.flatnonzero(np.isfinite(series.values))
    total = min(HISTORY_DAYS + days, math.floor(len(series.values) * series.step_s / 86_400.0))
    if total < days + 2:
        raise ConfigError(
            f"has {total} days; at least {days + 2} are required", where=load.name, fix="give a longer trace"
        )
    minutes = len(series.values) * series.step_s / MINUTE_S - total * _DAY_MINUTES + np.arange(total * _DAY_MINUTES)
    per_s = np.interp(minutes * MINUTE_S / series.step_s, positions, series.values[positions])
    return Case(load.name, per_s * (_PEAK_PER_S / float(per_s.max())), total - days, seed=seed)


def measure(cases: Sequence[Case], *, tell: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The numbers of `homeostat bench preempt`. Cases of one name differ in their seed; peers only run on the first."""
    firsts = {case.name: case for case in reversed(cases)}
    cells = [(case, policy) for case in cases for policy in (AHEAD, REACTIVE, ORACLE)]
    cells += [(case, policy) for case in firsts.values() for policy in PEERS]
    tell(f"{len(cells)} runs; this takes minutes")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(one, *zip(*cells, strict=True)))
    runs_by_case: dict[str, dict[str, list[dict[str, Any]]]] = {case.name: {} for case in cases}
    for (case, policy), run in zip(cells, runs, strict=True):
        runs_by_case[case.name].setdefault(policy, []).append(run)
    return {
        "seeds": sorted({case.seed for case in cases}),
        "cases": {name: verdict_json(runs, steady=firsts[name].steady) for name, runs in runs_by_case.items()},
    }


def one(case: Case, policy: str) -> dict[str, Any]:
    """One run: for how long it did not keep up with the load, and its cost."""
    result = simulate(case.scenario(), build_policy(case, policy), seed=case.seed, traffic=case.history(case.seed))
    figures = result.as_json()
    return {
        "violation_s": figures["slo_violation_s"],
        "executor_hours": figures["instance_seconds"] / 3600.0,
        "actions": figures["steps"],
        "ahead": _ahead(result),
        "least_executor_hours": figures["oracle_instance_seconds"] / 3600.0,
    }


def build_policy(case: Case, policy: str) -> Policy:
    if policy in PEERS:
        return registry.build(
            policy, {}, scenario_peak_per_s=float(case.per_s[case.history_days * _DAY_MINUTES :].max())
        )
    built_policy = registry.build("provisioning", {"planning": {"ahead": policy != REACTIVE}})
    if policy != ORACLE:
        return built_policy
    knowing = [
        replace(d, forecasts=_Future(case)) if isinstance(d, RiseDetector) else d for d in built_policy.detectors
    ]
    return replace(built_policy, detectors=tuple(knowing))


@dataclass(frozen=True)
class _Future:
    """A forecast that knows the load except for its noise."""

    case: Case

    def __call__(self, traffic: Traffic, horizon_s: float, confidence: float) -> Forecast:
        now = round(traffic.end_s / MINUTE_S) + self.case.history_days * _DAY_MINUTES
        steps = math.ceil(horizon_s / MINUTE_S)
        coming = np.pad(self.case.per_s, (0, steps), mode="edge")[now : now + steps]
        quantiles = (1.0 - confidence, 0.5, confidence)
        levels_per_s, reason = np.stack([coming] * 3, axis=1), "the future load is known"
        return Forecast(traffic.end_s, MINUTE_S, quantiles, levels_per_s, ORACLE, True, reason)


def verdict_json(policies: Mapping[str, Sequence[Mapping[str, Any]]], *, steady: bool = True) -> dict[str, Any]:
    """The median figures of each policy, and how acting ahead compares with reacting on equal loads and noise.

    Acting ahead is worse if it had more violations in the whole interval of the median difference.
    """
    ahead, reactive = policies[AHEAD], policies[REACTIVE]
    behind_s, reacting_s = (sum(run["violation_s"] for run in runs) for runs in (ahead, reactive))
    violations = behind_s / reacting_s if reacting_s else None
    cost = sum(run["executor_hours"] for run in ahead) / sum(run["executor_hours"] for run in reactive)
    more_s = median_interval([a["violation_s"] - b["violation_s"] for a, b in zip(ahead, reactive, strict=True)])
    enough = violations is not None and violations <= MOST_VIOLATIONS if steady else more_s.low <= 0
    return {
        "policies": {
            name: {**{figure: median(run[figure] for run in runs) for figure in runs[0]}, "runs": list(runs)}
            for name, runs in policies.items()
        },
        "steady": steady,
        "violations_over_reactive": violations,
        "cost_over_reactive": cost,
        "more_violation_s": {"median": more_s.median, "low": more_s.low, "high": more_s.high},
        "accepted": enough and cost <= MOST_COST,
    }


def _ahead(result: RunResult) -> int:
    return sum(step.because.startswith("rise-ahead") for step in result.trajectory)


def _workload(per_s: Array) -> WorkloadSpec:
    points = tuple((minute * MINUTE_S, rate) for minute, rate in enumerate(per_s.tolist()))
    return WorkloadSpec("trace", trace=points, noise=_NOISE)
