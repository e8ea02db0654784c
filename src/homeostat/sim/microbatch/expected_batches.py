"""How long a batch takes without noise but with its burden, and how many executors the load needs. Simulated runs are
judged by these numbers. The module uses the mechanisms of the engine, and none of the models of the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np

from homeostat.core.observation import Array
from homeostat.sim.microbatch.burdened_scheduling import burdened_schedule
from homeostat.sim.microbatch.burdens import collect_s, driver_delays_s, sink_s, stage_burden
from homeostat.sim.microbatch.disturbances import CALM, Disturbance
from homeostat.sim.microbatch.stages import Routing, busy_executors, needed_executors, stage_rows, work
from homeostat.sim.microbatch.task_scheduling import Slot, makespan_s
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec

# If the load cannot be processed in time, a number of executors is enough if a batch takes at most this many times the
# shortest possible time: more executors cost money and gain nothing that anyone could measure.
NEARLY_BEST = 1.02
# The shortest time is searched in steps of this factor.
SEARCH_FACTOR = 1.3
_ROUNDING_S = 1e-9


@dataclass(frozen=True, slots=True)
class Application:
    """The parts of an application that its batch durations depend on. `routings` are in the order of components."""

    components: tuple[ComponentSpec, ...]
    engine: MicrobatchSpec
    routings: tuple[Routing, ...]

    @property
    def partitions(self) -> dict[str, int]:
        pairs = zip(self.components, self.routings, strict=True)
        return {component.name: routing.partitions for component, routing in pairs}

    @property
    def useful_executors(self) -> int:
        """More executors than this would have no task."""
        most = ceil(max(routing.partitions for routing in self.routings) / self.engine.slots)
        return max(1, min(self.engine.max_executors, most))

    def rows_by_source(self, rows: float) -> dict[str, int]:
        sources = [component.name for component in self.components if component.kind == "source"]
        return {name: round(rows / len(sources)) for name in sources}


def expected_batch_s(
    application: Application,
    rows: float,
    executors: int,
    now: Disturbance = CALM,
    slowness: Mapping[int, float] | None = None,
) -> float:
    """The time of a batch of this many rows. `slowness` is how many times slower an executor is, by its number."""
    engine, taken_rows = application.engine, application.rows_by_source(rows)
    rows_by_stage = stage_rows(application.components, taken_rows, application.partitions)
    slots = _slots(application, executors, now, slowness or {})
    total_s = engine.driver_s + sum(driver_delays_s(now, engine.driver_s, taken_rows).values())
    surplus_rows: dict[str, float] = {}
    inputs = {name for component in application.components for name in component.inputs}
    rows_out = 0.0
    for component, routing in zip(application.components, application.routings, strict=True):
        stage_input = rows_by_stage[component.name] + round(sum(surplus_rows[name] for name in component.inputs))
        busy = busy_executors(executors, routing.partitions, engine.slots)
        stage = work(component, stage_input, routing, busy, engine.combine_overhead)
        burden = stage_burden(component, stage, 1.0, now, slots=engine.slots, executors=executors)
        sent_rows = component.rows_out(stage.rows)
        if burden is None:
            total_s += _stage_s(stage.seconds, slots, executors * engine.slots)
            surplus_rows[component.name] = 0.0
        else:
            work_s = stage.seconds + burden.work_s + burden.gc_s
            total_s += burdened_schedule(work_s, burden.fixed_s, burden.dispatch_s, slots)[0].end_s
            surplus_rows[component.name] = float((sent_rows * (burden.rows_out_factor - 1.0)).sum())
        if component.name not in inputs:
            rows_out += float(sent_rows.sum()) + surplus_rows[component.name]
    return total_s + collect_s(now, rows_out) + sink_s(now, rows_out) + engine.commit_s + now.commit_s


@lru_cache(maxsize=4096)
def sufficient_executors(
    application: Application, rate_per_s: float, interval_s: float, now: Disturbance = CALM
) -> int:
    """The fewest executors whose batch of one interval's rows ends within the interval.

    If no number of executors can do that: the fewest within 2 % of the shortest time that any number reaches.
    """
    limit_s = interval_s + _ROUNDING_S
    if now == CALM:
        executors = needed_executors(
            application.components, application.engine, application.routings, rate_per_s, interval_s
        )
        if executors < application.engine.max_executors:
            return executors

    def seconds(executors: int) -> float:
        return expected_batch_s(application, rate_per_s * interval_s, executors, now)

    most = application.useful_executors
    if seconds(most) > limit_s:
        # More executors can also make a batch longer, if they crowd each other or send each other rows.
        most = min(_steps(most), key=seconds)
        limit_s = max(limit_s, NEARLY_BEST * seconds(most))
    return _fewest(lambda executors: seconds(executors) <= limit_s, most)


def _steps(most: int) -> list[int]:
    steps = [1]
    while steps[-1] < most:
        steps.append(min(most, max(steps[-1] + 1, round(SEARCH_FACTOR * steps[-1]))))
    return steps


def _fewest(enough: Callable[[int], bool], most: int) -> int:
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


def _slots(application: Application, executors: int, now: Disturbance, slowness: Mapping[int, float]) -> Sequence[Slot]:
    engine = application.engine
    shares = [now.cpu_share(f"host-{number % engine.hosts}") for number in range(executors)]
    factors = [slowness.get(number, 1.0) / share for number, share in enumerate(shares)]
    return [Slot(number, 0.0, factors[number]) for _ in range(engine.slots) for number in range(executors)]


def _stage_s(seconds: Array, slots: Sequence[Slot], count: int) -> float:
    if all(slot.factor == 1.0 for slot in slots):
        return makespan_s(seconds, count)
    return burdened_schedule(seconds, np.zeros(len(seconds)), 0.0, slots)[0].end_s
