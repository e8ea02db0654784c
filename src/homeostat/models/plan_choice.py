"""Finds the cheapest configuration that meets the objective, and says why the others were not chosen."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from homeostat.core.configuration import Configuration, Knob, Patch, Value
from homeostat.models.application_model import ApplicationModel
from homeostat.models.planning_question import Arrivals, Candidate, Goal, Proposer, Question, Steady
from homeostat.models.search import Smallest

# The number of times within the horizon, in addition to now, at which the load is looked up: more find a narrow peak,
# but each costs a lookup. A choice.
_MOMENTS_AHEAD = 4
# How much each changed knob adds to the cost of a candidate: every change can go wrong, so of equal costs the one with
# fewer changes wins. Small enough never to outweigh an instance. A choice.
_RISK_PER_KNOB = 0.005
# The share of the horizon in which a restart may make rows late: an objective for p95 leaves 5 %.
_MAY_BE_LATE = 0.05
# Candidates within this share of the chosen one's cost are reported to cost the same: the difference would be printed
# as 0 %.
_SAME_COST = 0.005
# How candidates are ranked if none meets the objective: the share of the load that they process counts at most 1,
# exceeding the cost limit counts more than the whole load, and latency breaks ties. Choices.
_OVER_BUDGET_PENALTY, _LATENCY_WEIGHT_PER_S, _UNKNOWN_LATENCY_PENALTY = 2.0, 1e-3, 1.0

_Key = tuple[tuple[Knob, Value], ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A proposal of a plug-in that was refused, and why; without a configuration, the plug-in itself failed."""

    proposer: str
    why: str
    configuration: Configuration | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of planning for a load of `rate_per_s`.

    `chosen` is None if no configuration meets the objective; `best` is then the closest one. `refused` has the
    proposals that could not be judged.
    """

    rate_per_s: float
    goal: Goal
    present: Candidate
    chosen: Candidate | None
    best: Candidate
    candidates: tuple[Candidate, ...]
    refused: tuple[Refused, ...] = ()

    @property
    def patch(self) -> Patch:
        """The knobs that have to change."""
        return self.present.configuration.effective_part(Patch(self.best.configuration.values))


def plan(
    model: ApplicationModel,
    *,
    arrivals: Arrivals | None = None,
    goal: Goal | None = None,
    proposers: Sequence[Proposer] = (),
) -> Plan:
    """Judge the configurations of every proposer and choose the cheapest that meets the objective."""
    goal = goal or Goal()
    load = arrivals or Steady(model.arrival_per_s, model.variation)
    question = Question(model, planned_rate(model, load, goal), goal)
    present = question.judge(model.configuration, "present")
    candidates: dict[_Key, Candidate] = {_key(model.configuration): present}
    refusals: list[Refused] = []
    from_plugins = (_judged_safely(question, proposer, candidates) for proposer in proposers)
    for outcome in chain(*from_plugins, _judge(question, Smallest(), candidates)):
        if isinstance(outcome, Refused):
            refusals.append(outcome)
        else:
            candidates[_key(outcome.configuration)] = outcome
    return replace(_choose(question, present, tuple(candidates.values())), refused=tuple(refusals))


def _judged_safely(
    question: Question, proposer: Proposer, judged_keys: Container[_Key]
) -> Iterator[Candidate | Refused]:
    """As `_judge`, but a plug-in that raises an error is reported and does not stop the others."""
    try:
        yield from _judge(question, proposer, judged_keys)
    except Exception as error:
        yield Refused(_name(proposer), f"raised {type(error).__name__}: {' '.join(str(error).split())}")


def _judge(question: Question, proposer: Proposer, judged_keys: Container[_Key]) -> Iterator[Candidate | Refused]:
    for configuration in proposer.propose(question):
        refusal = question.model.capabilities.refusal(configuration)
        if refusal:
            yield Refused(_name(proposer), refusal, configuration)
        elif _key(configuration) not in judged_keys:
            yield question.judge(configuration, _name(proposer))


def _name(proposer: Proposer) -> str:
    return str(getattr(proposer, "name", "") or type(proposer).__name__)


def planned_rate(model: ApplicationModel, arrivals: Arrivals, goal: Goal) -> float:
    """Return the largest load within the horizon at the required confidence, at least the objective's throughput."""
    ahead = [goal.horizon_s * part / _MOMENTS_AHEAD for part in range(_MOMENTS_AHEAD + 1)]
    return max(*(arrivals.quantile(goal.confidence, each) for each in ahead), model.objective.throughput_per_s or 0.0)


def _choose(question: Question, present: Candidate, candidates: Sequence[Candidate]) -> Plan:
    """Choose the candidate that meets the objective and spends least.

    The present configuration is preferred to others that are not better, and to any whose restart makes rows late for
    too long.
    """
    longest_s = _MAY_BE_LATE * question.goal.horizon_s
    order = sorted(
        candidates,
        key=lambda each: (bool(each.lost), each.late_s > longest_s, each.spent * _risk_factor(question, each)),
    )
    holding = [each for each in order if not each.lost]
    if holding:
        best = holding[0]
        chosen: Candidate | None = best
    else:
        chosen, best = None, max(candidates, key=lambda each: (_reach(question, each), -each.spent))
    candidates_with_reason = [_with_reason(each, best, longest_s) for each in order]
    return Plan(question.rate_per_s, question.goal, present, chosen, best, tuple(candidates_with_reason))


def _risk_factor(question: Question, candidate: Candidate) -> float:
    """A factor on the cost that grows with the number of changed knobs."""
    changed = question.model.configuration.effective_part(Patch(candidate.configuration.values))
    return 1.0 + _RISK_PER_KNOB * len(changed.values)


def _reach(question: Question, candidate: Candidate) -> float:
    """How close a candidate comes to the objective: by the share of the load, then by latency."""
    share = min(1.0, candidate.predicted.saturation_per_s.low / max(question.rate_per_s, 1e-9))
    limit = question.model.objective.cost_limit
    affordable = limit is None or candidate.cost <= limit
    late_s = candidate.predicted.latency_s.get("p95", 0.0)
    lateness = _LATENCY_WEIGHT_PER_S * late_s if math.isfinite(late_s) else _UNKNOWN_LATENCY_PENALTY
    return share - (0.0 if affordable else _OVER_BUDGET_PENALTY) - lateness


def _with_reason(candidate: Candidate, best: Candidate, longest_s: float) -> Candidate:
    if candidate is best or candidate.lost:
        return candidate
    if candidate.late_s > longest_s >= best.late_s:
        late = f"would meet the objective, but the restart would delay rows for {candidate.late_s:.0f} s"
        return replace(candidate, lost=f"{late}; at most {longest_s:.0f} s are allowed")
    more = candidate.spent / best.spent - 1.0 if best.spent else 0.0
    dearer = (
        f"also meets the objective, but costs {more:.0%} more"
        if more >= _SAME_COST
        else "also meets the objective, at the same cost"
    )
    return replace(candidate, lost=dearer)


def _key(configuration: Configuration) -> _Key:
    return tuple(sorted(configuration.values.items()))
