"""Change the number of partitions so that keys fall on them more evenly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from homeostat.core.actions import ADJUST_SKEW
from homeostat.core.alert_text import alert_about
from homeostat.core.causes import HASH_IMBALANCE
from homeostat.core.configuration import Knob, KnobSpec, Patch
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.view import View
from homeostat.detectors.instance_skew import typically
from homeostat.models.batch_model import BatchTime, StageTime, batch_time, waves_of
from homeostat.resolvers.proposal_weights import LEAST_SHORTER, PAUSE_WEIGHT

# Numbers of partitions whose stage takes at most this many times the best time are as good, and the smallest is chosen.
# More of them save partitions, but give away time. Choice: 3 % is within the noise of batches.
_AS_GOOD_RATIO = 1.03
# How many times the present partitions a guess may propose at most. More of them cost more per task. Choice.
_MOST_TIMES = 4
# The imbalance that is assumed for a number of partitions if the keys were not read. A lower value would promise more
# than most hashes keep. Choice.
_ASSUMED_IMBALANCE = 1.2
# Keeps the slope finite if all tasks have equal rows.
_SMALLEST_SPREAD = 1e-12


@dataclass(frozen=True, slots=True)
class RebalanceResolver:
    """Proposes the number of partitions at which the stage ends soonest: its largest partition is small, and its waves
    are full.

    If the keys in the state were read, it knows how they would fall. While they are being read, it waits. Otherwise it
    guesses a prime number that fills its waves: it has no factor in common with what made the keys fall together.
    """

    name: str = "rebalance"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        uneven = [diagnosis for diagnosis in diagnoses if diagnosis.cause == HASH_IMBALANCE]
        if not uneven or (view.balance is not None and not view.balance.imbalance):
            return
        batch = batch_time(view, len(view.window.telling(LEAST_OBSERVATIONS)))
        for diagnosis in uneven:
            if batch is None or diagnosis.component not in batch.stages:
                continue
            component = view.topology[diagnosis.component]
            spec = view.capabilities.knobs.get(component.partitions) if component.partitions is not None else None
            if component.partitions is None or spec is None:
                why = view.capabilities.notes.get(
                    f"{component.query}: state partitions", "the number of partitions cannot be changed here"
                )
                yield alert_about(diagnosis, why)
            else:
                yield self._propose(view, diagnosis, batch, component.partitions, spec)

    def _propose(self, view: View, diagnosis: Diagnosis, batch: BatchTime, knob: Knob, spec: KnobSpec) -> Proposal:
        stage, costs = batch.stages[diagnosis.component], _costs(view, diagnosis.component)
        keys_read = view.balance is not None and stage.partitions in view.balance.imbalance
        over = view.balance.imbalance if keys_read and view.balance is not None else _guesses(stage, batch.slots)
        possible = {n: o for n, o in over.items() if spec.minimum <= n <= spec.maximum and n != stage.partitions}
        target = _soonest(costs, batch.slots, possible)
        before_s, now_s = costs.stage_s(stage.partitions, batch.slots, costs.over), batch.seconds
        shorter = costs.stage_s(target, batch.slots, possible[target]) / before_s if target and before_s > 0 else 1.0
        after_s = now_s - stage.span_s * (1.0 - shorter)
        if after_s > (1.0 - LEAST_SHORTER) * now_s:
            return alert_about(diagnosis, "no number of partitions would make the batch much shorter")
        how = "as its keys show" if keys_read else "a guess: its keys were not read"
        text = f"the largest of {target} partitions gets {possible[target]:.2f} × the mean ({how})"
        return Proposal(
            ADJUST_SKEW,
            (diagnosis,),
            Patch({knob: target}),
            component=diagnosis.component,
            prediction=Prediction(math.log(now_s / after_s), (diagnosis.component,), text),
            benefit=1.0 - after_s / now_s,
            cost=spec.apply_s * PAUSE_WEIGHT,
        )


class Costs(NamedTuple):
    """The cost of the tasks of a stage: `task_s` each, and `rows_s` for all rows. The largest has `over` × the mean."""

    task_s: float
    rows_s: float
    over: float

    def stage_s(self, partitions: int, slots: float, over: float) -> float:
        each_s = self.rows_s / partitions
        return max(self.task_s + over * each_s, waves_of(partitions, slots) * (self.task_s + each_s))


def _costs(view: View, component: str) -> Costs:
    """A line through time over rows. Uneven tasks show well what an empty one costs."""
    window = view.window.last(LEAST_OBSERVATIONS)
    rows, run_s = window.tasks(component, "rows"), window.tasks(component, "run_s")
    measured = np.isfinite(rows) & np.isfinite(run_s)
    if not measured.any() or float(rows[measured].sum()) <= 0:
        return Costs(0.0, 0.0, 1.0)
    apart = rows[measured] - rows[measured].mean()
    slope = max(0.0, float(apart @ run_s[measured]) / max(float(apart @ apart), _SMALLEST_SPREAD))
    slope = min(slope, float(run_s[measured].sum() / rows[measured].sum()))
    typical = typically(rows, 1)
    mean = float(np.nanmean(typical))
    task_s = float(run_s[measured].mean()) - slope * float(rows[measured].mean())
    return Costs(task_s, slope * mean * len(typical), float(np.nanmax(typical)) / mean if mean > 0 else 1.0)


def _soonest(costs: Costs, slots: float, possible: Mapping[int, float]) -> int:
    """The smallest of the numbers that are as good as the best; 0 if there is none."""
    times_s = {n: costs.stage_s(n, slots, over) for n, over in possible.items()}
    best_s = min(times_s.values(), default=math.inf)
    return min((n for n, each_s in times_s.items() if each_s <= _AS_GOOD_RATIO * best_s), default=0)


def _guesses(stage: StageTime, slots: float) -> dict[int, float]:
    """The prime numbers above the present one that leave the fewest slots idle in their last wave."""
    counts = [n for n in range(stage.partitions + 1, _MOST_TIMES * stage.partitions + 2) if _is_prime(n)]
    full = {n: n / (waves_of(n, slots) * slots) for n in counts}
    fullest = max(full.values(), default=0.0)
    return {n: _ASSUMED_IMBALANCE for n in counts if full[n] >= fullest / _AS_GOOD_RATIO}


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, math.isqrt(number) + 1))
