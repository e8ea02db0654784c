"""The oracle of `homeostat bench mixes`, which knows every cause from the moment when it begins.

For each run it tries a number of plans on the same engine with the same noise, from the same moment, and keeps the one
with the fewest unhealthy seconds. Its plans take as long to apply as those of any policy, and it never knows a cause in
advance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil

from homeostat.core.configuration import (
    EXECUTORS,
    EXECUTORS_KNOB,
    PARALLELISM,
    SPREAD,
    STATE_PARTITIONS,
    Configuration,
    Knob,
    Patch,
    Value,
    diff,
)
from homeostat.core.events import Apply, Observed
from homeostat.lab.bench.mix_cases import (
    COUNT,
    HASH_IMBALANCE,
    HOT_KEY,
    INTERVAL_S,
    SLOW_WORKER,
    SOURCE,
    SOURCE_SKEW,
    Case,
)
from homeostat.sim.scenario.spec import MicrobatchSpec
from homeostat.sim.simulation import SimulatedEngine, build_engine
from homeostat.sim.truth import TruthSample
from homeostat.sim.workload import Workload

# The sizes that are tried, as multiples of the instances needed for the load: more instances work off the backlog, and
# fill the waves of tasks.
_SIZES = (1.0, 1.4, 2.0)
_TIME_LIMIT_S = 600.0
# A dataflow advances in steps of one second, and a problem begins with the first whole step after its time.
_STEP_S = 2.0
_STATE_KNOB = Knob(STATE_PARTITIONS, "main")


@dataclass(frozen=True, slots=True)
class Plan:
    """`size` times the instances that are needed. `at_once`: one change when the last problem has begun, instead of one
    change for each. `rehash`: an imbalance is fixed by another number of partitions, not by spreading all keys.
    """

    size: float
    at_once: bool
    rehash: bool
    idle: bool = False


@dataclass(frozen=True, slots=True)
class OracleRun:
    unhealthy_s: float
    actions: int
    plan: Plan


def unhealthy_s(case: Case, truth: Sequence[TruthSample]) -> float:
    """The time since the first problem in which the application did not keep up."""
    return sum(min(s.span_s, s.at_s - case.first_s) for s in truth if not s.healthy and s.at_s > case.first_s)


def oracle(case: Case) -> OracleRun:
    """The best of the plans. Doing nothing is one of them."""
    return _best(case, [begins_s + _STEP_S for begins_s in case.begins_s])


def observer(case: Case) -> OracleRun:
    """The best plan if each cause is known only one interval after the first measurement that fully shows it."""
    return _best(case, [_visible_s(case, begins_s) + INTERVAL_S for begins_s in case.begins_s])


def _best(case: Case, known_s: Sequence[float]) -> OracleRun:
    runs = []
    for plan in _plans(case):
        runs.append(_play(case, plan, known_s))
        if runs[-1].unhealthy_s == 0:
            break
    return min(runs, key=lambda run: (run.unhealthy_s, run.actions, run.plan.size))


def _visible_s(case: Case, begins_s: float) -> float:
    """The end of the first batch or tick that began after this moment."""
    engine = build_engine(case.scenario)
    for event in engine.wait(case.scenario.duration_s):
        if isinstance(event, Observed):
            sample = event.observation
            lasted_s = max((flow.seconds for flow in sample.flows if flow.seconds > 0), default=sample.span_s)
            if sample.at_s - lasted_s >= begins_s:
                return sample.at_s
    return case.scenario.duration_s


def _plans(case: Case) -> Iterator[Plan]:
    yield Plan(1.0, at_once=True, rehash=False, idle=True)
    timings = (True, False) if len(set(case.begins_s)) > 1 else (True,)
    rehashes = (True, False) if HASH_IMBALANCE in case.kinds and _is_microbatch(case) else (False,)
    for size, at_once, rehash in product(_SIZES, timings, rehashes):
        yield Plan(size, at_once, rehash)


def _play(case: Case, plan: Plan, known_s: Sequence[float]) -> OracleRun:
    """`known_s` holds the time from which each of the kinds is known."""
    engine = build_engine(case.scenario)
    desired = engine.describe().configuration
    actions = 0
    for at_s in [] if plan.idle else [max(known_s)] if plan.at_once else sorted(set(known_s)):
        engine.wait(at_s)
        known_kinds = tuple(kind for kind, since_s in zip(case.kinds, known_s, strict=True) if since_s <= at_s)
        next_configuration = desired.patched(_patch(case, plan, known_kinds, engine, desired))
        capabilities = engine.describe().capabilities
        steps = diff(desired, next_configuration, capabilities)
        if steps:
            actions += 1
            engine.apply(Apply(f"oracle-{actions}", at_s, next_configuration, steps, _TIME_LIMIT_S))
        desired = next_configuration
    engine.wait(case.scenario.duration_s)
    engine.close()
    return OracleRun(unhealthy_s(case, engine.truth), actions, plan)


def _patch(
    case: Case, plan: Plan, known_kinds: tuple[str, ...], engine: SimulatedEngine, desired: Configuration
) -> Patch:
    workload = Workload(case.scenario.workload, case.scenario.seed)
    needed = engine.needed_parallelism(workload.mean_per_s(engine.now_s), engine.now_s)
    values: dict[Knob, Value] = {
        knob: max(int(desired.get(knob, 1)), ceil(plan.size * count))
        for knob, count in needed.items()
        if knob.kind in (EXECUTORS, PARALLELISM) and knob.scope != SOURCE
    }
    specs = engine.describe().capabilities.knobs
    values = {knob: specs[knob].clip(value) for knob, value in values.items()}
    slots = int(values.get(EXECUTORS_KNOB) or values.get(Knob(PARALLELISM, COUNT), 1))
    if _is_microbatch(case) and isinstance(case.scenario.engine, MicrobatchSpec):
        slots *= case.scenario.engine.slots
    spreads = {HOT_KEY: COUNT, SOURCE_SKEW: SOURCE}
    if not plan.rehash:
        spreads[HASH_IMBALANCE] = COUNT
    elif HASH_IMBALANCE in known_kinds:
        values[_STATE_KNOB] = _prime_from(max(int(desired[_STATE_KNOB]), 2 * slots) + 1)
    values |= {Knob(SPREAD, name): slots for kind, name in spreads.items() if kind in known_kinds}
    retired = engine.faulty_workers() if SLOW_WORKER in known_kinds else frozenset()
    return Patch(values, retired)


def _is_microbatch(case: Case) -> bool:
    return isinstance(case.scenario.engine, MicrobatchSpec)


def _prime_from(number: int) -> int:
    while any(number % factor == 0 for factor in range(2, int(number**0.5) + 1)):
        number += 1
    return number
