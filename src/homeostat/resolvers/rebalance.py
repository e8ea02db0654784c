"""Another number of partitions, on which the keys fall evenly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from homeostat.core.actions import ADJUST_SKEW
from homeostat.core.alerting import alert_about
from homeostat.core.causes import HASH_IMBALANCE
from homeostat.core.configuration import Knob, KnobSpec, Patch
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.view import View
from homeostat.detectors.instance_skew import typically
from homeostat.models.batch_model import BatchTime, StageTime, batch_time, waves_of

_LEAST_GAIN = 0.05
_AS_GOOD = 1.03
_MOST_TIMES = 4
_GUESSED = 1.2  # how uneven keys are taken to be on a number of partitions on which nobody saw them
_PAUSE_WEIGHT = 1.0 / 3000.0


@dataclass(frozen=True, slots=True)
class RebalanceResolver:
    """The number of partitions at which the stage ends soonest: its largest part small, its waves full.

    How the keys would fall is known where somebody looked at them; while somebody does, it waits. Elsewhere it is a
    guess: a prime number, which has no factor in common with what made them fall together, and which fills its waves.
    """

    name: str = "rebalance"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        uneven = [diagnosis for diagnosis in diagnoses if diagnosis.cause == HASH_IMBALANCE]
        if not uneven or (view.balance is not None and not view.balance.imbalance):
            return
        batch = batch_time(view, LEAST_OBSERVATIONS)
        for diagnosis in uneven:
            if batch is None or diagnosis.component not in batch.stages:
                continue
            component = view.topology[diagnosis.component]
            spec = view.capabilities.knobs.get(component.partitions) if component.partitions is not None else None
            if component.partitions is None or spec is None:
                why = view.capabilities.notes.get(f"{component.query}: state partitions", "it cannot be changed here")
                yield alert_about(diagnosis, why)
            else:
                yield self._propose(view, diagnosis, batch, component.partitions, spec)

    def _propose(self, view: View, diagnosis: Diagnosis, batch: BatchTime, knob: Knob, spec: KnobSpec) -> Proposal:
        stage, costs = batch.stages[diagnosis.component], _costs(view, diagnosis.component)
        looked = view.balance is not None and stage.partitions in view.balance.imbalance
        known = view.balance.imbalance if looked and view.balance is not None else _guessed(stage, batch.slots)
        possible = {n: over for n, over in known.items() if spec.minimum <= n <= spec.maximum and n != stage.partitions}
        wanted = _soonest(costs, batch.slots, possible)
        before_s, now_s = costs.stage_s(stage.partitions, batch.slots, costs.over), batch.seconds
        shorter = costs.stage_s(wanted, batch.slots, possible[wanted]) / before_s if wanted and before_s > 0 else 1.0
        after_s = now_s - stage.span_s * (1.0 - shorter)
        if after_s > (1.0 - _LEAST_GAIN) * now_s:
            return alert_about(diagnosis, "no number of partitions would make the batch much shorter")
        how = "as its keys show" if looked else "a guess: nobody looked at its keys"
        text = f"the largest of {wanted} partitions gets {possible[wanted]:.2f} × the mean ({how})"
        return Proposal(
            ADJUST_SKEW,
            (diagnosis,),
            Patch({knob: wanted}),
            component=diagnosis.component,
            prediction=Prediction(math.log(now_s / after_s), (diagnosis.component,), text),
            benefit=1.0 - after_s / now_s,
            cost=spec.apply_s * _PAUSE_WEIGHT,
        )


class Costs(NamedTuple):
    """What the tasks of a stage cost: so much each, so much for all rows. The largest has `over` times the mean."""

    task_s: float
    rows_s: float
    over: float

    def stage_s(self, partitions: int, slots: float, over: float) -> float:
        each_s = self.rows_s / partitions
        return max(self.task_s + over * each_s, waves_of(partitions, slots) * (self.task_s + each_s))


def _costs(view: View, component: str) -> Costs:
    """A line through time over rows: tasks as uneven as these tell well what an empty one costs."""
    window = view.window.last(LEAST_OBSERVATIONS)
    rows, run_s = window.tasks(component, "rows"), window.tasks(component, "run_s")
    known = np.isfinite(rows) & np.isfinite(run_s)
    if not known.any() or float(rows[known].sum()) <= 0:
        return Costs(0.0, 0.0, 1.0)
    apart = rows[known] - rows[known].mean()
    slope = max(0.0, float(apart @ run_s[known]) / max(float(apart @ apart), 1e-12))
    slope = min(slope, float(run_s[known].sum() / rows[known].sum()))
    typical = typically(rows, 1)
    mean = float(np.nanmean(typical))
    task_s = float(run_s[known].mean()) - slope * float(rows[known].mean())
    return Costs(task_s, slope * mean * len(typical), float(np.nanmax(typical)) / mean if mean > 0 else 1.0)


def _soonest(costs: Costs, slots: float, possible: Mapping[int, float]) -> int:
    """Of those that are as good as the best the fewest; 0 if there is none."""
    times_s = {n: costs.stage_s(n, slots, over) for n, over in possible.items()}
    best_s = min(times_s.values(), default=math.inf)
    return min((n for n, each_s in times_s.items() if each_s <= _AS_GOOD * best_s), default=0)


def _guessed(stage: StageTime, slots: float) -> dict[int, float]:
    """Prime numbers above the present one, those that leave the fewest slots idle in their last wave."""
    counts = [n for n in range(stage.partitions + 1, _MOST_TIMES * stage.partitions + 2) if _is_prime(n)]
    full = {n: n / (waves_of(n, slots) * slots) for n in counts}
    fullest = max(full.values(), default=0.0)
    return {n: _GUESSED for n in counts if full[n] >= fullest / _AS_GOOD}


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % factor for factor in range(2, math.isqrt(number) + 1))
