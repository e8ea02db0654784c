"""The cheapest configuration that will hold the objective, all components at once, and why the others lost."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import NormalDist
from typing import Protocol

from homeostat.core.configuration import (
    ADMISSION_ROOM,
    EXECUTORS_KNOB,
    ROWS_PER_TRIGGER,
    TRIGGER_S,
    Configuration,
    Knob,
    Patch,
    Value,
)
from homeostat.models.application import ApplicationModel, Predicted
from homeostat.models.forecast import Forecast
from homeostat.models.holding import holds_in_time, too_late, too_slow
from homeostat.models.replay import BatchModel
from homeostat.models.saturation import FlowModel

CONFIDENCE = 0.9
HORIZON_S = 1800.0
CATCH_UP_S = 600.0
SMALLEST = "the smallest"

_LOOKED_AHEAD = 4
_TRIGGERS = (0.5, 0.25, 2.0)
# A row waits for up to a trigger, and then for a batch that may take as long.
_TRIGGERS_OF_WANTED = (0.75, 0.5, 0.25)
_CUTS = (2, 4, 0.5)
_SHORTEST_TRIGGER_S = 1.0
_TROUBLE = 0.005

_Key = tuple[tuple[Knob, Value], ...]


class Arrivals(Protocol):
    """The load to come."""

    def quantile(self, share: float, ahead_s: float) -> float:
        """Rows per second that will not be exceeded so far ahead, with this probability."""
        ...


@dataclass(frozen=True, slots=True)
class Steady:
    """It stays as it is and varies as it did: what is assumed without a forecast."""

    rate_per_s: float
    variation: float = 0.0

    def quantile(self, share: float, ahead_s: float) -> float:
        return self.rate_per_s * math.exp(self.variation * NormalDist().inv_cdf(share))


@dataclass(frozen=True, slots=True)
class Forecasted:
    """As it is now, and then as it was forecast: what is forecast for any moment has to be held until then, too."""

    now: Steady
    forecast: Forecast

    def quantile(self, share: float, ahead_s: float) -> float:
        return self.forecast.highest(ahead_s, share) if ahead_s > 0 else self.now.quantile(share, 0.0)


@dataclass(frozen=True, slots=True)
class Goal:
    """Hold the objective with this confidence over the horizon; a backlog shall be gone within `catch_up_s`."""

    confidence: float = CONFIDENCE
    horizon_s: float = HORIZON_S
    catch_up_s: float = CATCH_UP_S


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that was looked at. `lost` says why it was not taken; empty for the one that was.

    `cost` is in instances, `spent` in instance-seconds over the horizon, the way there included: `pause_s` until it is
    up and `catch_up_s` until nothing waits any more.
    """

    predicted: Predicted
    proposer: str
    cost: float
    pause_s: float
    catch_up_s: float
    spent: float
    lost: str = ""

    @property
    def configuration(self) -> Configuration:
        return self.predicted.configuration

    @property
    def done_s(self) -> float:
        """Until it is up and has caught up."""
        return self.pause_s + self.catch_up_s


@dataclass(frozen=True, slots=True)
class Refused:
    """What a proposer of one's own proposed in vain, and why; without a configuration, what came of asking it."""

    proposer: str
    why: str
    configuration: Configuration | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """`rate_per_s` is the load that was planned for. `chosen` is None where nothing holds the objective; `best` then
    comes closest. `refused` could not be judged."""

    rate_per_s: float
    goal: Goal
    present: Candidate
    chosen: Candidate | None
    best: Candidate
    candidates: tuple[Candidate, ...]
    refused: tuple[Refused, ...] = ()

    @property
    def patch(self) -> Patch:
        """What has to change."""
        return self.present.configuration.changed(Patch(self.best.configuration.values))


@dataclass(frozen=True, slots=True)
class Question:
    """What a proposer is asked: a configuration for this load. It may ask back what any of them would do."""

    model: ApplicationModel
    rate_per_s: float
    goal: Goal = Goal()

    def predict(self, configuration: Configuration) -> Predicted:
        return self.model.predict(configuration, self.rate_per_s)

    def judge(self, configuration: Configuration, proposer: str = "") -> Candidate:
        """The configuration with its prediction, its costs, and what is wrong with it."""
        model, rate = self.model, self.rate_per_s
        predicted = self.predict(configuration)
        pause_s = model.pause_s(configuration)
        catch_up_s = model.catch_up_s(configuration, rate, model.behind_rows(configuration, rate))
        cost = model.capabilities.cost(configuration)
        return Candidate(
            predicted,
            proposer,
            cost,
            pause_s,
            catch_up_s,
            spent=cost * (self.goal.horizon_s + pause_s + min(catch_up_s, self.goal.horizon_s)),
            lost=_wrong(self, predicted, catch_up_s, cost),
        )


class Proposer(Protocol):
    """A scheduler of one's own: configurations it would like to see judged."""

    @property
    def name(self) -> str: ...

    def propose(self, question: Question) -> Iterable[Configuration]: ...


def plan(
    model: ApplicationModel,
    *,
    arrivals: Arrivals | None = None,
    goal: Goal | None = None,
    proposers: Sequence[Proposer] = (),
) -> Plan:
    """Every proposer's configurations judged, the cheapest that holds chosen."""
    goal = goal or Goal()
    coming = arrivals or Steady(model.arrival_per_s, model.variation)
    question = Question(model, planned_rate(model, coming, goal), goal)
    present = question.judge(model.configuration, "present")
    found: dict[_Key, Candidate] = {_key(model.configuration): present}
    refused: list[Refused] = []
    theirs = (_unfailing(question, proposer, found) for proposer in proposers)
    for outcome in chain(*theirs, _judged(question, Smallest(), found)):
        if isinstance(outcome, Refused):
            refused.append(outcome)
        else:
            found[_key(outcome.configuration)] = outcome
    return replace(_chosen(question, present, tuple(found.values())), refused=tuple(refused))


def _unfailing(question: Question, proposer: Proposer, known: Container[_Key]) -> Iterator[Candidate | Refused]:
    """One of the user's own that fails leaves the others alone."""
    try:
        yield from _judged(question, proposer, known)
    except Exception as error:
        yield Refused(_name(proposer), f"raised {type(error).__name__}: {' '.join(str(error).split())}")


def _judged(question: Question, proposer: Proposer, known: Container[_Key]) -> Iterator[Candidate | Refused]:
    for configuration in proposer.propose(question):
        refusal = question.model.capabilities.refusal(configuration)
        if refusal:
            yield Refused(_name(proposer), refusal, configuration)
        elif _key(configuration) not in known:
            yield question.judge(configuration, _name(proposer))


def _name(proposer: Proposer) -> str:
    return str(getattr(proposer, "name", "") or type(proposer).__name__)


def planned_rate(model: ApplicationModel, arrivals: Arrivals, goal: Goal) -> float:
    """The largest load of the horizon that is not exceeded with the wanted confidence, or what the objective asks."""
    ahead = [goal.horizon_s * part / _LOOKED_AHEAD for part in range(_LOOKED_AHEAD + 1)]
    return max(*(arrivals.quantile(goal.confidence, each) for each in ahead), model.objective.throughput_per_s or 0.0)


@dataclass(frozen=True, slots=True)
class Smallest:
    """The fewest of everything that hold the load: for a dataflow of each component, for batches of executors, with the
    partitions and the trigger there are or others."""

    name: str = SMALLEST

    def propose(self, question: Question) -> Iterator[Configuration]:
        performance = question.model.performance
        for asked in (question, _catching_up(question)):
            if isinstance(performance, FlowModel):
                yield _fewest_instances(asked, performance)
            else:
                yield from _batch_configurations(asked, performance)


def _catching_up(question: Question) -> Question:
    """The same with as much more load as works off in time what waits, and what a restart would add to that."""
    model = question.model
    pauses_s = [spec.apply_s for spec in model.capabilities.knobs.values() if not spec.live]
    waiting = model.backlog_rows + question.rate_per_s * max(pauses_s, default=0.0)
    more_per_s = waiting / question.goal.catch_up_s if model.replays else 0.0
    return replace(question, rate_per_s=question.rate_per_s + more_per_s)


def _fewest_instances(question: Question, flow: FlowModel) -> Configuration:
    model, offered = question.model, flow.offered(question.rate_per_s)
    z = NormalDist().inv_cdf(question.goal.confidence)
    values = dict(model.configuration.values)
    for operator in flow.operators:
        knob = model.topology[operator.name].scaled_by
        if knob in model.capabilities.knobs:
            sure = offered[operator.name] * math.exp(z * operator.error)
            values[knob] = int(model.capabilities.knobs[knob].clip(operator.fewest(sure)))
    return Configuration(values, model.configuration.retired)


def _batch_configurations(question: Question, batches: BatchModel) -> Iterator[Configuration]:
    model = question.model
    spec = model.capabilities.knobs.get(EXECUTORS_KNOB)
    for trigger in _trigger_choices(question):
        for cut in _partition_choices(question):
            changed = {**trigger, **cut}
            base = model.configuration.patched(Patch({**changed, **_admission(question, batches, trigger)}))
            if spec is None:
                yield base
                continue
            fewest = _fewest_executors(question, batches, base, int(spec.minimum), int(spec.maximum))
            for executors in (fewest, fewest - 1, fewest + 1, _affordable(question, fewest)):
                if spec.minimum <= executors <= spec.maximum:
                    yield base.patched(Patch({EXECUTORS_KNOB: executors}))
            if _in_time(question, batches, base, fewest):
                break  # cutting the stages anew would only cost more


def _fewest_executors(question: Question, batches: BatchModel, base: Configuration, low: int, high: int) -> int:
    """By halving: more executors never make a batch longer, unless they take the CPU from each other."""
    setup = question.model.setup(base)
    widest = max((stage.tasks(setup) for stage in batches.stages), default=1)
    high = min(high, max(low, math.ceil(widest / batches.slots)))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _in_time(question, batches, base, middle) else (middle + 1, high)
    return low


def _affordable(question: Question, executors: int) -> int:
    """So many, or as many as the cost limit allows: the most that can be done where it is what binds."""
    model, limit = question.model, question.model.objective.cost_limit
    each = model.capabilities.knobs[EXECUTORS_KNOB].cost
    if limit is None or each <= 0:
        return executors
    others = model.capabilities.cost(model.configuration.patched(Patch({EXECUTORS_KNOB: 0})))
    return min(executors, math.floor((limit - others) / each))


def _in_time(question: Question, batches: BatchModel, base: Configuration, executors: int) -> bool:
    setup = question.model.setup(base.patched(Patch({EXECUTORS_KNOB: executors})))
    return holds_in_time(batches, setup, question.rate_per_s, question.goal.confidence)


def _trigger_choices(question: Question) -> Iterator[dict[Knob, Value]]:
    """As it is; with an objective for lag or latency also shorter and longer ones, and such as suit what it asks."""
    model = question.model
    yield {}
    wanted = [each for each in (model.objective.latency_p95_s, model.objective.lag_s) if each is not None]
    if not wanted:
        return
    for knob, spec in model.capabilities.knobs.items():
        now_s = model.configuration.values.get(knob)
        if knob.kind == TRIGGER_S and now_s:
            lengths_s = [now_s * factor for factor in _TRIGGERS] + [min(wanted) * part for part in _TRIGGERS_OF_WANTED]
            choices = {float(spec.clip(round(max(_SHORTEST_TRIGGER_S, each_s), 1))) for each_s in lengths_s}
            yield from ({knob: trigger_s} for trigger_s in sorted(choices - {now_s}))


def _partition_choices(question: Question) -> Iterator[dict[Knob, Value]]:
    """As they are, cut finer, as a stage with fewer tasks than slots leaves slots idle, or coarser, as each costs."""
    model = question.model
    yield {}
    for cut in _CUTS:
        others: dict[Knob, Value] = {}
        for knob in model.partition_knobs():
            if knob in model.configuration.values:
                others[knob] = int(model.capabilities.knobs[knob].clip(cut * model.configuration[knob]))
        if others and any(value != model.configuration[knob] for knob, value in others.items()):
            yield others


def _admission(question: Question, batches: BatchModel, trigger: dict[Knob, Value]) -> dict[Knob, Value]:
    """A bound on rows that would be the next bottleneck grows with the load."""
    model = question.model
    trigger_s = next(iter(trigger.values()), batches.setup.trigger_s)
    rows: dict[Knob, Value] = {}
    for knob, bound in model.configuration.values.items():
        spec = model.capabilities.knobs.get(knob)
        needed = ADMISSION_ROOM * question.rate_per_s * max(float(trigger_s), 1.0)
        if knob.kind == ROWS_PER_TRIGGER and spec is not None and bound < needed / ADMISSION_ROOM:
            rows[knob] = int(spec.clip(math.ceil(needed)))
    return rows


def _wrong(question: Question, predicted: Predicted, catch_up_s: float, cost: float) -> str:
    """Why it does not do; empty if it does."""
    goal, objective = question.goal, question.model.objective
    late = too_slow(question.model, predicted, goal.confidence) or too_late(question.model, predicted, goal.confidence)
    if late:
        return late
    if objective.cost_limit is not None and cost > objective.cost_limit:
        return f"costs {cost:g} instances, {objective.cost_limit:g} are allowed"
    if catch_up_s > goal.catch_up_s:
        return f"the backlog would take {_span(catch_up_s)} to be gone"
    return ""


def _chosen(question: Question, present: Candidate, candidates: Sequence[Candidate]) -> Plan:
    """Of those that hold the one that spends least; the present one before others that are no better."""
    order = sorted(candidates, key=lambda each: (bool(each.lost), each.spent * _trouble(question, each)))
    holding = [each for each in order if not each.lost]
    if holding:
        best = holding[0]
        chosen: Candidate | None = best
    else:
        chosen, best = None, max(candidates, key=lambda each: (_reach(question, each), -each.spent))
    told = [_told(each, best) for each in order]
    return Plan(question.rate_per_s, question.goal, present, chosen, best, tuple(told))


def _trouble(question: Question, candidate: Candidate) -> float:
    """Every knob that is turned may go wrong: where costs are the same, fewer are better."""
    changed = question.model.configuration.changed(Patch(candidate.configuration.values))
    return 1.0 + _TROUBLE * len(changed.values)


def _reach(question: Question, candidate: Candidate) -> float:
    """How close it comes to the objective: the share of the load, then how late."""
    share = min(1.0, candidate.predicted.saturation_per_s.low / max(question.rate_per_s, 1e-9))
    limit = question.model.objective.cost_limit
    affordable = limit is None or candidate.cost <= limit
    late_s = candidate.predicted.latency_s.get("p95", 0.0)
    return share - (0.0 if affordable else 2.0) - (1e-3 * late_s if math.isfinite(late_s) else 1.0)


def _told(candidate: Candidate, best: Candidate) -> Candidate:
    if candidate is best or candidate.lost:
        return candidate
    more = candidate.spent / best.spent - 1.0 if best.spent else 0.0
    dearer = f"holds too, but costs {more:.0%} more" if more >= 0.005 else "holds too, at the same cost"
    return replace(candidate, lost=dearer)


def _key(configuration: Configuration) -> _Key:
    return tuple(sorted(configuration.values.items()))


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if math.isfinite(seconds) else "for ever"
