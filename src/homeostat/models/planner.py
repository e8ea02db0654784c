"""The cheapest configuration that will hold the objective, all components at once, and why the others lost."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from homeostat.core.configuration import Configuration, Knob, Patch, Value
from homeostat.models.application_model import ApplicationModel
from homeostat.models.planning_question import Arrivals, Candidate, Goal, Proposer, Question, Steady
from homeostat.models.search import Smallest

_LOOKED_AHEAD = 4
_TROUBLE = 0.005
# What an objective for 95 % of the rows leaves for restarts.
_MAY_BE_LATE = 0.05

_Key = tuple[tuple[Knob, Value], ...]


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


def _chosen(question: Question, present: Candidate, candidates: Sequence[Candidate]) -> Plan:
    """Of those that hold the one that spends least; the present one before others that are no better, and before
    any that would break the objective for longer on the way there than they may.
    """
    longest_s = _MAY_BE_LATE * question.goal.horizon_s
    order = sorted(
        candidates,
        key=lambda each: (bool(each.lost), each.late_s > longest_s, each.spent * _trouble(question, each)),
    )
    holding = [each for each in order if not each.lost]
    if holding:
        best = holding[0]
        chosen: Candidate | None = best
    else:
        chosen, best = None, max(candidates, key=lambda each: (_reach(question, each), -each.spent))
    told = [_told(each, best, longest_s) for each in order]
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


def _told(candidate: Candidate, best: Candidate, longest_s: float) -> Candidate:
    if candidate is best or candidate.lost:
        return candidate
    if candidate.late_s > longest_s >= best.late_s:
        late = f"would hold, but getting there makes rows late for {candidate.late_s:.0f} s"
        return replace(candidate, lost=f"{late}; {longest_s:.0f} s may be")
    more = candidate.spent / best.spent - 1.0 if best.spent else 0.0
    dearer = f"holds too, but costs {more:.0%} more" if more >= 0.005 else "holds too, at the same cost"
    return replace(candidate, lost=dearer)


def _key(configuration: Configuration) -> _Key:
    return tuple(sorted(configuration.values.items()))
