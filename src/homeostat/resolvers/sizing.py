"""How many instances each component needs for a load: all of them in one plan."""

from __future__ import annotations

import math
from dataclasses import dataclass

from homeostat.core.configuration import Knob
from homeostat.core.view import View
from homeostat.models.capacity import (
    BatchTime,
    Load,
    backlog_rows,
    batch_time,
    loads,
    replays,
    target_utilisation,
)

_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Need:
    """`exact` instances would do; `instances` are whole ones."""

    component: str
    knob: Knob
    present: int
    exact: float

    @property
    def instances(self) -> int:
        return max(1, math.ceil(self.exact - _ROUNDING))


@dataclass(frozen=True, slots=True)
class Sizing:
    """`catch_up_s`: in how long a backlog shall be gone."""

    catch_up_s: float = 600.0

    def needs(self, view: View, skewed: frozenset[str] = frozenset(), *, floor_per_s: float = 0.0) -> list[Need]:
        """What every component needs for the present load; empty where too little is known.

        Components named in `skewed` are sized as if their rows were even: that is another resolver's to mend.
        """
        if view.micro_batch:
            need = self._executors(view, floor_per_s)
            return [need] if need is not None else []
        needs = (self._instances(view, load, load.component in skewed, floor_per_s) for load in loads(view).values())
        return [need for need in needs if need is not None]

    def _factor(self, view: View, load: Load, floor_per_s: float) -> float:
        """What must be planned for, over what arrives: headroom, a floor, and the backlog to work off."""
        arrivals = view.flow("arrival_per_s", last=30)
        arrival = float(arrivals[-1]) if len(arrivals) else math.nan
        extra = 0.0
        if arrival > 0 and replays(view):
            pause_s = max((spec.apply_s for spec in view.capabilities.knobs.values() if not spec.live), default=0.0)
            waiting = backlog_rows(view)
            waiting = waiting if math.isfinite(waiting) else 0.0
            extra = (waiting / arrival + pause_s) / self.catch_up_s
        floor = max(1.0, floor_per_s / arrival) if arrival > 0 else 1.0
        return max(1.0 / target_utilisation(view), 1.0 + extra) * floor

    def _instances(self, view: View, load: Load, skewed: bool, floor_per_s: float) -> Need | None:
        rate = load.even_per_s / load.instances if load.instances else math.nan
        level = load.level_per_s()
        if not (math.isfinite(rate) and rate > 0 and math.isfinite(level)):
            return None
        imbalance = 1.0 if skewed else load.imbalance
        exact = level * self._factor(view, load, floor_per_s) * imbalance / rate
        return Need(load.component, view.topology[load.component].scaled_by, load.instances, exact)

    def _executors(self, view: View, floor_per_s: float) -> Need | None:
        fit = batch_time(view)
        if fit is None:
            return None
        load = next(iter(loads(view).values()))
        level = load.level_per_s()
        trigger_s = view.current[-1].trigger_s
        wanted = level * self._factor(view, load, floor_per_s)
        if not (math.isfinite(wanted) and load.instances):
            return None
        knob = view.topology[load.component].scaled_by
        for executors in range(1, 4 * load.instances + 8):
            row_s = _row_s(fit, executors / load.instances)
            if fit.capacity_per_s(trigger_s, row_s) >= wanted:
                return Need(load.component, knob, load.instances, float(executors))
        return Need(load.component, knob, load.instances, float(load.instances))


def _row_s(fit: BatchTime, ratio: float) -> float:
    """Time per row with `ratio` times the slots: the spans shrink, but never below the longest tasks."""
    span_s = fit.row_s * fit.rows
    return max(min(span_s, fit.path_s), span_s / ratio) / fit.rows
