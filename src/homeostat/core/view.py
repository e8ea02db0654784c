"""What detectors, diagnosers and resolvers see: read-only, and the same for every engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

import numpy as np

from homeostat.core.batch_intervals import telling
from homeostat.core.configuration import Capabilities, Configuration, Knob, KnobSpec, Value
from homeostat.core.digest import Digest
from homeostat.core.evidence_limits import GAP_SHARE
from homeostat.core.history import History, as_history
from homeostat.core.objective import Objective
from homeostat.core.observation import NAN, Array, Balance, KeyLoad, Observation
from homeostat.core.source_sample import SourceSample
from homeostat.core.topology import Topology
from homeostat.core.traffic import Traffic
from homeostat.core.trust import Trusts

_Result = TypeVar("_Result")
# Digests of the present configuration that detectors look at: an hour of batches every ten seconds. More remember
# longer and cost time in every step. A choice.
CURRENT_KEPT = 360
# How many digests are checked to tell whether the engine works in batches. It never changes, so a few are enough. A
# choice.
_KIND_LOOK_BACK = 50
# The spread of rows that stay with the instance of their key.
_NOT_SPREAD = 1
_NO_TASKS = np.empty(0)


@dataclass(frozen=True)
class Window:
    """Observations in a row, as matrices: one line per observation, one column per instance."""

    observations: tuple[Observation, ...] = ()

    def __len__(self) -> int:
        return len(self.observations)

    def last(self, count: int) -> Window:
        return Window(self.observations[-count:])

    def since(self, at_s: float) -> Window:
        return Window(tuple(o for o in self.observations if o.at_s > at_s))

    def telling(self, least: int) -> Window:
        """Return the latest observations that must agree on a finding; none if there are too few."""
        count = telling(self.observations, least)
        return self.last(count) if count else Window()

    @property
    def latest(self) -> Observation | None:
        return self.observations[-1] if self.observations else None

    @cached_property
    def _matrices(self) -> dict[tuple[str, str], Array]:
        return {}

    def tasks(self, component: str, column: str) -> Array:
        """Return `column` of every instance over time; NaN where nothing was measured."""
        key = (component, column)
        if key not in self._matrices:
            lines = [
                getattr(o.tasks[component], column) if component in o.tasks else _NO_TASKS for o in self.observations
            ]
            widths = {len(line) for line in lines}
            width = max(widths, default=0)
            if len(widths) <= 1:
                matrix = np.array(lines, dtype=np.float64).reshape(len(lines), width)
            else:
                matrix = np.full((len(lines), width), NAN)
                for number, line in enumerate(lines):
                    matrix[number, : len(line)] = line
            self._matrices[key] = matrix
        return self._matrices[key]

    @property
    def seconds(self) -> float:
        """The time that the observations cover."""
        return sum(o.span_s for o in self.observations)


@dataclass(frozen=True)
class View:
    """One moment. `window` holds what was observed since the last action, or within the policy's window length.

    `history` holds the digests of all configurations, `traffic` what arrived for weeks, and `trust` how far predictions
    have been off so far. `sources` holds the last report of each source, which may be newer than the last observation.
    `violation_cost` is that of the policy. `earlier` holds a few whole observations of the past, of any configuration,
    and `latest` the newest ones of any configuration, which show how fast each worker was.
    """

    now_s: float
    topology: Topology
    configuration: Configuration
    capabilities: Capabilities
    objective: Objective = Objective()
    window: Window = Window()
    history: tuple[Digest, ...] = ()
    epoch: int = 0
    standing_since_s: Mapping[tuple[str, str], float] = field(default_factory=dict)
    trust: Trusts = field(default_factory=dict)
    traffic: Traffic = Traffic()
    sources: tuple[SourceSample, ...] = ()
    violation_cost: float = 0.0
    earlier: tuple[Observation, ...] = ()
    latest: Window = Window()

    @cached_property
    def _once(self) -> dict[str, object]:
        return {}

    def once(self, name: str, compute: Callable[[View], _Result]) -> _Result:
        """Return what `compute` makes of this view. It runs once, for the first plug-in that asks."""
        if name not in self._once:
            self._once[name] = compute(self)
        return cast(_Result, self._once[name])

    @cached_property
    def current(self) -> tuple[Digest, ...]:
        """The digests since the present configuration took effect, at most the latest CURRENT_KEPT of them."""
        digests = self.history[-CURRENT_KEPT:]
        for back in range(len(digests) - 1, -1, -1):
            if digests[back].epoch != self.epoch:
                return digests[back + 1 :]
        return digests

    @cached_property
    def numbers(self) -> History:
        """The history with its numbers as columns."""
        return as_history(self.history)

    @cached_property
    def micro_batch(self) -> bool:
        """Whether the engine works in batches (it reports their duration, or the trigger) or as a dataflow."""
        return any(math.isfinite(d.seconds) or math.isfinite(d.trigger_s) for d in self.history[-_KIND_LOOK_BACK:])

    def missing_since(self, at_s: float) -> str:
        """Return what was not measured since then; empty if nothing is missing. Shrinking needs complete data."""
        covered_s = at_s
        for digest in (d for d in self.current if d.at_s > at_s):
            if digest.at_s - digest.span_s > covered_s + GAP_SHARE * digest.span_s:
                return "an observation"
            missing = self._missing(digest)
            if missing:
                return missing
            covered_s = digest.at_s
        return "" if covered_s > at_s else "an observation"

    def _missing(self, digest: Digest) -> str:
        flow = {"rows": digest.rows, "arrival": digest.arrival_per_s, "pending rows": digest.pending_rows}
        if self.micro_batch:
            flow["the duration of a batch"] = digest.seconds
        missing = [name for name, value in flow.items() if not math.isfinite(value)]
        if missing:
            return missing[0]
        if self.micro_batch and digest.rows == 0:
            return ""  # a batch without rows has no tasks to measure
        for component in self.topology:
            part = digest.components.get(component.name)
            feeds = bool(self.topology.downstream(component.name))
            if part is None or not part.complete or (feeds and not math.isfinite(part.rows_out)):
                return f"metrics of {component.name}"
        return ""

    def parallelism(self, component: str) -> Value:
        """Return the value of the knob that scales a component, or its minimum if the engine does not report it."""
        knob = self.topology[component].scaled_by
        return self.configuration.get(knob, self.spec(knob).minimum)

    def spec(self, knob: Knob) -> KnobSpec:
        return self.capabilities.knobs.get(knob, KnobSpec())

    def column(self, component: str, name: str, last: int = 0) -> Array:
        """A component's digest column over the present configuration."""
        return self.numbers.part(component, name, self._looked_at(last))

    def flow(self, name: str, last: int = 0) -> Array:
        return self.numbers.flow(name, self._looked_at(last))

    def _looked_at(self, last: int) -> int:
        return min(last, len(self.current)) if last else len(self.current)

    @cached_property
    def balance(self) -> Balance | None:
        """How the keys would fall on other numbers of partitions, if that was measured since the last action."""
        return next((o.balance for o in reversed(self.window.observations) if o.tasks), None)

    def spread(self, component: str) -> int:
        """On how many instances the rows of each key may be; 1 if each key stays on one."""
        knob = self.topology[component].spread if component in self.topology else None
        return int(self.configuration.get(knob, _NOT_SPREAD)) if knob is not None else _NOT_SPREAD

    def key_loads(self, component: str) -> tuple[KeyLoad, ...]:
        """The loads of its keys in each batch of the present configuration with rows; none if keys are not watched."""
        if component not in self.topology:
            return ()
        part = self.topology[component]
        scope = part.watched if part.spread is None else part.spread.scope
        loads = (digest.keys.get(scope) for digest in self.current)
        return tuple(load for load in loads if load is not None and load.share >= 0)

    def workers_of(self, component: str, instances: tuple[int, ...]) -> tuple[str, ...]:
        """The workers that ran these instances last."""
        latest = self.window.latest
        if latest is None or component not in latest.tasks:
            return ()
        index = latest.tasks[component].worker
        workers = {
            latest.workers.ids[int(index[i])]
            for i in instances
            if i < len(index) and 0 <= index[i] < len(latest.workers.ids)
        }
        return tuple(sorted(workers))
