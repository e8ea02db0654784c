"""How many instances each component needs for a load."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from homeostat.core.configuration import Knob
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.view import View
from homeostat.detectors.idle import IdleEvidence
from homeostat.detectors.pressure import PressureEvidence
from homeostat.models.batch_model import RECENT
from homeostat.models.batch_replay import BatchModel
from homeostat.models.capacity import (
    Load,
    backlog_rows,
    level,
    loads,
    measured_capacities,
    peak,
    replays,
)
from homeostat.models.model_fitting import batch_model
from homeostat.models.performance import capacity_per_s
from homeostat.models.saturation import KeyShares

# Keeps floating-point errors from adding an instance.
_ROUNDING = 1e-6
# How often the instances and the imbalance that follows from them are computed in turn. It settles after two or three.
_ROUNDS = 3
# Stands for the load of a component that got no rows, so that ratios stay finite.
_ALMOST_NOTHING = 1e-6
# A stage that takes at least this share of the batch is worth more partitions. A smaller share would repartition stages
# that save little. Choice.
_LEAST_SHARE_OF_BATCH = 0.1
# Partitions per slot. More of them even out unequal tasks, but each costs its start. From Spark's tuning guide: 2 to 3.
_TASKS_PER_SLOT = 2
# The largest number of executors that is tried: four times the present ones, and eight. More take longer to search.
_MOST_TIMES, _MORE = 4, 8
# After this many observations half of the headroom is planned for. More would redeploy with too little headroom for
# longer, fewer would plan for noise that is not known yet. Choice.
_HALF_HEADROOM_AFTER = 5.0
# A trigger shorter than this counts as this long: such batches start right after each other.
SHORTEST_TRIGGER_S = 1.0
# How long added executors stay, divided by the cost of a second of being behind in seconds of all executors: the usual
# ten minutes until a shrink, divided by the usual `violation_cost` of twenty. A larger value saves executors, a smaller
# one processes the backlog sooner. A choice.
HURRY_S = 30.0

Cut = Callable[[int], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Need:
    """`exact` instances are enough; `instances` rounds up. If not `enough`, no number is, and this one is the best.

    `partitions`: the tasks that stages must be divided into, so that the instances have work. `wanted_per_s`: the load
    that it is for. `note`: why it differs from the result of the model.
    """

    component: str
    knob: Knob
    present: int
    exact: float
    enough: bool = True
    partitions: Mapping[str, int] = field(default_factory=dict)
    wanted_per_s: float = math.nan
    note: str = ""

    @property
    def instances(self) -> int:
        return max(1, math.ceil(self.exact - _ROUNDING))


@dataclass(frozen=True, slots=True)
class Sizing:
    """`catch_up_s`: in what time a backlog should be processed, unless the objective says. A shorter time needs more
    instances (choice). If executors are added and removed without a pause, the backlog is processed sooner where that
    costs little."""

    catch_up_s: float = 600.0

    def needs(
        self, view: View, skewed: frozenset[str] = frozenset(), *, floor_per_s: float = 0.0, last: int = RECENT
    ) -> list[Need]:
        """What every component needs for the load of the `last` observations. Empty if too little was measured.

        Components in `skewed` are sized as if their rows were even, because another resolver fixes that.
        """
        needs = []
        for load in loads(view).values():
            offered_per_s = floor_per_s or _ALMOST_NOTHING if load.empty else level(load.offered_per_s, last)
            needed_per_s = offered_per_s * self._factor(view, load, floor_per_s, last)
            needed_per_s = max(needed_per_s, peak(load.offered_per_s, last))
            if math.isfinite(needed_per_s) and load.instances:
                if view.micro_batch:
                    need = _executors(view, load, needed_per_s, skewed)
                    needs.append(_hurried(view, load, need, skewed, offered_per_s * self._hurry(view, load)))
                else:
                    needs.append(_instances(view, load, needed_per_s, load.component in skewed))
        return [need for need in needs if need is not None]

    def _factor(self, view: View, load: Load, floor_per_s: float, last: int) -> float:
        """The load to plan for ÷ what arrives: the headroom or the backlog, whichever needs more, and the floor."""
        arrival = level(view.flow("arrival_per_s"), last)
        extra = 0.0
        if arrival > 0 and replays(view):
            pause_s = max((spec.apply_s for spec in view.capabilities.knobs.values() if not spec.live), default=0.0)
            waiting = backlog_rows(view)
            waiting = waiting if math.isfinite(waiting) else 0.0
            extra = (waiting / arrival + pause_s) / (view.objective.catch_up_s or self.catch_up_s)
        floor = max(1.0, floor_per_s / arrival) if arrival > 0 else 1.0
        return max(1.0 / _planned_utilisation(view, load), 1.0 + extra) * floor

    def is_behind(self, view: View) -> bool:
        """Whether more rows wait than arrive in a trigger interval."""
        return view.micro_batch and _behind_s(view) > 0

    def _hurry(self, view: View, load: Load) -> float:
        """The load for which to size ÷ the arriving load, so that a backlog is processed. It is 1 if executors cannot
        be added and removed without a pause.

        Processing a backlog takes the same executor-seconds, however fast it is done. But added executors stay for a
        while, so the best time grows with the square root of the backlog.
        """
        behind_s = _behind_s(view) if view.spec(view.topology[load.component].scaled_by).live else 0.0
        if not behind_s > 0:
            return 1.0
        return 1.0 + behind_s / min(self.catch_up_s, math.sqrt(behind_s * HURRY_S))


def _behind_s(view: View) -> float:
    """In how many seconds the waiting rows arrived, beyond one trigger interval, or without one beyond one batch. Not
    positive if no more rows wait."""
    arrival, waiting = level(view.flow("arrival_per_s")), backlog_rows(view)
    if not (view.current and replays(view) and waiting > 0 and arrival > 0):
        return 0.0
    trigger_s = view.current[-1].trigger_s
    # Without a trigger interval, the rows that arrive during a batch wait for the next one.
    usual_s = trigger_s if trigger_s > 0 else level(view.flow("seconds"))
    return waiting / arrival - max(usual_s, SHORTEST_TRIGGER_S) if trigger_s >= 0 and usual_s > 0 else 0.0


def _planned_utilisation(view: View, load: Load) -> float:
    """The utilisation to plan for. If a change requires a redeployment, it leaves less headroom at first, because the
    noise is only roughly known then.

    Pressure is found at half of the headroom, so a little too little needs no second step. An instance too many does.
    """
    if view.spec(view.topology[load.component].scaled_by).live:
        return load.target
    observations = len(view.history)
    return math.pow(load.target, observations / (observations + _HALF_HEADROOM_AFTER))


def within_bounds(view: View, needs: Sequence[Need]) -> list[Need]:
    """The needs for the part of the load that passes the components that are at their bounds."""
    passing = min((view.spec(need.knob).maximum / need.exact for need in needs if need.exact > 0), default=1.0)
    return [replace(need, exact=need.exact * min(passing, 1.0)) for need in needs]


def since_onset(diagnoses: Sequence[Diagnosis], most: int) -> int:
    """For how many observations the load has had its present level, as far as the detector can say."""
    symptoms = [symptom for diagnosis in diagnoses for symptom in diagnosis.symptoms]
    counts = [count for symptom in symptoms if (count := _observations_since_onset(symptom)) is not None]
    return int(min(min(counts), most)) if counts else RECENT


def _observations_since_onset(symptom: Symptom) -> float | None:
    pressure, idle = symptom.evidence.find(PressureEvidence), symptom.evidence.find(IdleEvidence)
    if idle is not None:
        return idle.observations_since_onset
    return pressure.observations_since_onset if pressure is not None else None


def _instances(view: View, load: Load, wanted_per_s: float, even: bool) -> Need | None:
    rate = load.even_per_s / load.instances
    if not (math.isfinite(rate) and rate > 0):
        return None
    component = view.topology[load.component]
    exact = wanted_per_s * (1.0 if even else load.imbalance) / rate
    shares = KeyShares(load.instances, load.imbalance, load.spread)
    if component.keyed and not even:
        for _ in range(0 if shares.hot else _ROUNDS):
            exact = wanted_per_s * shares.with_instances(math.ceil(exact - _ROUNDING)) / rate
        if shares.hot:
            # More instances do not divide the rows of one key, but the rows of the other keys may need them.
            exact = max(wanted_per_s / rate, min(exact, load.instances))
    need = Need(load.component, component.scaled_by, load.instances, exact)
    if even or need.instances == load.instances:
        return need
    measured = measured_capacities(view, load.component)
    while need.instances < load.instances and measured.get(need.instances, wanted_per_s) < wanted_per_s:
        need = replace(need, exact=need.instances + 1.0)
    return need


def _executors(view: View, load: Load, wanted_per_s: float, even: frozenset[str]) -> Need | None:
    """The fewest executors that are enough. More partitions only if no number is enough without them."""
    model = batch_model(view)
    if model is None:
        return None
    for name in sorted(even & {stage.name for stage in model.stages}):
        model = model.with_even_rows(name)
    cut: Cut = _uncut
    best = _fewest(view, load, model, wanted_per_s, cut)
    # More partitions need a restart and, with state, a rewrite of it. So the stage itself comes first, then all.
    for stages in ([load.component], [stage.name for stage in model.stages]):
        if not best.enough:
            finer_cut = partial(_finer, view, model, stages, wanted_per_s)
            finer = _fewest(view, load, model, wanted_per_s, finer_cut)
            best, cut = (finer, finer_cut) if finer.partitions else (best, cut)
    # No tasks for executors above the bound.
    return replace(best, partitions=cut(int(view.spec(best.knob).clip(best.instances))))


def _hurried(view: View, load: Load, need: Need | None, even: frozenset[str], wanted_per_s: float) -> Need | None:
    """Enough executors to process a backlog soon, with the partitions that the load needs."""
    model = batch_model(view)
    if need is None or model is None or not need.enough or not wanted_per_s > need.wanted_per_s:
        return need
    for name in sorted(even & {stage.name for stage in model.stages}):
        model = model.with_even_rows(name)
    faster = _fewest(view, load, model, wanted_per_s, lambda _: need.partitions)
    return replace(need, exact=max(need.exact, faster.exact))


def _uncut(executors: int) -> dict[str, int]:
    return {}


def _fewest(view: View, load: Load, model: BatchModel, wanted_per_s: float, cut: Cut) -> Need:
    """By bisection: more executors never process less, unless they compete for the CPU."""

    def capacity(executors: int) -> float:
        return capacity_per_s(model, replace(model.setup, executors=executors, partitions=cut(executors)))

    low, high = 1, _MOST_TIMES * load.instances + _MORE
    most = capacity(high)
    target_per_s = min(wanted_per_s, most * (1 - _ROUNDING))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if capacity(middle) >= target_per_s else (middle + 1, high)
    knob, enough = view.topology[load.component].scaled_by, most >= wanted_per_s
    return Need(load.component, knob, load.instances, float(low), enough, cut(low), wanted_per_s)


def _finer(view: View, model: BatchModel, stages: Sequence[str], wanted_per_s: float, executors: int) -> dict[str, int]:
    """Two tasks per slot for each of the stages that would leave slots idle for a good part of the batch."""
    rows = wanted_per_s * max(model.setup.trigger_s, SHORTEST_TRIGGER_S)
    spans_s = {stage.name: model.stage_s(stage, rows, model.setup) for stage in model.stages}
    slots = model.slots * executors
    finer = {}
    for stage in (stage for stage in model.stages if stage.name in stages):
        knob = view.topology[stage.name].partitions if stage.name in view.topology else None
        spec = view.capabilities.knobs.get(knob) if knob is not None else None
        notable = spans_s[stage.name] >= _LEAST_SHARE_OF_BATCH * sum(spans_s.values())
        if spec is not None and notable and stage.partitions < slots:
            finer[stage.name] = max(stage.partitions, int(spec.clip(_TASKS_PER_SLOT * slots)))
    return finer
