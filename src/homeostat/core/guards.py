"""Checks of a proposal before it becomes an action. Each one lets it pass, trims it, or returns the reason against it.

All times are clock time, so that they do not depend on how often the loop runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from homeostat.core.batch_intervals import LATE_INTERVALS
from homeostat.core.configuration import PARALLELISM, SOURCE_PARTITIONS, SPREAD, STATE_PARTITIONS, Knob, Patch, Value
from homeostat.core.findings import Proposal
from homeostat.core.view import View

APPLICATION = "app"
# Halvings in the search for the largest change that the cost limit allows: enough for whole numbers up to 10¹².
_HALVINGS = 40
# An unconfirmed shrink delays confirmed ones for at most this many times `confirm_s`: more merges more changes into
# one, fewer save sooner. A choice.
_LONGEST_DELAY = 2.0
# Knobs that cut the work into parts and use no resources.
_CUTS = (SPREAD, SOURCE_PARTITIONS, STATE_PARTITIONS, PARALLELISM)


class Wish(NamedTuple):
    """Resolvers have proposed a smaller value of a knob since `since_s`; `value` is the largest of those values."""

    since_s: float
    value: Value


@dataclass(frozen=True, slots=True)
class GuardContext:
    """What guards need in addition to the view.

    `busy` says for each scope which action is under way or being judged. In the scopes of `overtaken` all of them are
    being judged, and there is another cause. `last_remedy_s` says for each scope and cause when an action for it was
    last decided or took effect.
    """

    view: View
    paused: str = ""
    busy: Mapping[str, str] = field(default_factory=dict)
    last_action_s: Mapping[str, float] = field(default_factory=dict)
    shrink_wishes: Mapping[Knob, Wish] = field(default_factory=dict)
    standing_since_s: Mapping[tuple[str, str], float] = field(default_factory=dict)
    overtaken: frozenset[str] = frozenset()
    last_remedy_s: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def scope(self, proposal: Proposal) -> str:
        """Actions on one query wait for each other; those on different queries do not."""
        topology = self.view.topology
        return topology[proposal.component].query if proposal.component in topology else APPLICATION

    def conflicting(self, scope: str, others: Iterable[str]) -> list[str]:
        """Return the scopes that may not change at the same time: the same one, and the whole application."""
        return [other for other in others if other == scope or APPLICATION in (other, scope)]

    def shrinks(self, proposal: Proposal) -> bool:
        now = self.view.configuration
        after = now.patched(proposal.patch)
        return self.view.capabilities.cost(after) < self.view.capabilities.cost(now)


class Guard(Protocol):
    @property
    def name(self) -> str: ...

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str: ...


@dataclass(frozen=True, slots=True)
class KillSwitch:
    name: str = "kill switch"

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str:
        return context.paused or proposal


@dataclass(frozen=True, slots=True)
class OneInFlight:
    """Lets no action begin while another one of the scope is under way, or is being judged.

    With `may_overtake`, remedies do not wait for a verdict while there is a cause that the judged action is not for.
    """

    may_overtake: bool = False
    name: str = "one action in flight"

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str:
        for scope in context.conflicting(context.scope(proposal), context.busy):
            if not self.may_overtake or scope not in context.overtaken or context.shrinks(proposal):
                return context.busy[scope]
        return proposal


@dataclass(frozen=True, slots=True)
class CoolDown:
    """Waits between two actions on one scope; shrinking waits longer than growing.

    With `by_cause`, an action waits only for the last one with the same cause, and for one that is being judged:
    otherwise there would be no verdict. While batches are late, it does not wait for a verdict, because that costs more
    than the verdict is worth.
    """

    # Longer lets an action show its effect, shorter reacts sooner. A choice.
    grow_s: float = 60.0
    # Longer than for growing: shrinking can wait, and growing again costs more than waiting. A choice.
    shrink_s: float = 300.0
    by_cause: bool = False
    name: str = "cool-down"

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str:
        scopes = context.conflicting(context.scope(proposal), context.last_action_s)
        times_s = [context.last_action_s[scope] for scope in scopes]
        shrinks = context.shrinks(proposal)
        latest = context.view.window.latest
        is_late = latest is not None and latest.intervals >= LATE_INTERVALS
        waits_for_verdict = context.conflicting(context.scope(proposal), context.busy) and not is_late
        causes = {diagnosis.cause for diagnosis in proposal.because}
        if self.by_cause and causes and not (shrinks or waits_for_verdict):
            remedies = context.last_remedy_s.items()
            times_s = [at_s for (scope, cause), at_s in remedies if scope in scopes and cause in causes]
        wait_s = self.shrink_s if shrinks else self.grow_s
        left_s = max(times_s, default=-math.inf) + wait_s - context.view.now_s
        return f"cooling down for another {left_s:.0f} s" if left_s > 0 else proposal


@dataclass(frozen=True, slots=True)
class ConfirmShrink:
    """Shrinks a knob only after a smaller value was proposed all the time, and only to the largest of those values.

    A knob that is not confirmed yet delays those that are, because one change is better than two, but for at most the
    same time again. If anything was not measured meanwhile, nothing is confirmed. Next to a knob that grows, a shrink
    needs no confirmation, because the load has not fallen; but everything must have been measured too.
    """

    # Longer rides out a short fall of the load, shorter saves sooner. A choice.
    confirm_s: float = 300.0
    name: str = "confirm before shrinking"

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str:
        now = context.view.configuration
        values = dict(proposal.patch.values)
        paid_values = {knob: value for knob, value in values.items() if context.view.spec(knob).cost > 0}
        smaller = {knob: value for knob, value in paid_values.items() if value < now.get(knob, value)}
        if any(value > now.get(knob, value) for knob, value in paid_values.items()):
            return self._beside_growth(proposal, smaller, context)
        unproven = {knob: why for knob in smaller if (why := self._unproven(knob, context))}
        proven_since = {knob: context.shrink_wishes[knob] for knob in smaller if knob not in unproven}
        longest_s = max((context.view.now_s - wish.since_s for wish in proven_since.values()), default=0.0)
        if unproven and longest_s < _LONGEST_DELAY * self.confirm_s:
            return next(iter(unproven.values()))
        values = {knob: value for knob, value in values.items() if knob not in unproven}
        values |= {knob: min(max(values[knob], wish.value), now[knob]) for knob, wish in proven_since.items()}
        return with_values(proposal, values, context)

    def _unproven(self, knob: Knob, context: GuardContext) -> str:
        """Return why the knob may not shrink yet; empty if it may."""
        wish = context.shrink_wishes.get(knob)
        if wish is None:
            return f"{knob}: not yet confirmed"
        left_s = wish.since_s + self.confirm_s - context.view.now_s
        if left_s > 0:
            return f"{knob}: confirming for another {left_s:.0f} s"
        missing = context.view.missing_since(wish.since_s)
        return f"{knob}: {missing} was missing while confirming" if missing and self.confirm_s > 0 else ""

    def _beside_growth(
        self, proposal: Proposal, smaller: Mapping[Knob, Value], context: GuardContext
    ) -> Proposal | str:
        """Without complete data, nothing shrinks. Growth is not affected."""
        view = context.view
        came_up_s = view.current[0].at_s - view.current[0].span_s if view.current else view.now_s
        if not smaller or not view.missing_since(max(came_up_s, view.now_s - self.confirm_s)):
            return proposal
        values = {knob: value for knob, value in proposal.patch.values.items() if knob not in smaller}
        return with_values(proposal, values, context)


@dataclass(frozen=True, slots=True)
class LargestChange:
    """Lets no knob change by more than these factors at once.

    A change of one unit is always allowed. So is any change of the number of tasks or partitions, which uses no
    resources: fewer tasks than planned would leave executors idle.
    """

    # Larger reaches a higher load in one step; smaller limits the harm of a wrong measurement. A choice; Heron's is 4.
    grow: float = 5.0
    # Smaller than for growing: too few instances do more harm than too many. A choice.
    shrink: float = 2.0
    name: str = "largest change"

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str:
        values: dict[Knob, Value] = {}
        for knob, value in proposal.patch.values.items():
            now = context.view.configuration.get(knob, value)
            low, high = min(now / self.shrink, now - 1), max(now * self.grow, now + 1)
            free = knob.kind in _CUTS and context.view.spec(knob).cost == 0
            clipped_value = value if free else min(max(value, low), high)
            inwards = math.floor if clipped_value > now else math.ceil
            whole = inwards(clipped_value) if isinstance(now, int) else clipped_value
            values[knob] = context.view.spec(knob).clip(whole)
        return with_values(proposal, values, context)


@dataclass(frozen=True, slots=True)
class Bounds:
    name: str = "bounds"

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str:
        specs = context.view.capabilities.knobs
        missing = [str(knob) for knob in proposal.patch.values if knob not in specs]
        if missing:
            return f"this engine has no {missing[0]}"
        if proposal.patch.retire and not context.view.capabilities.can_replace:
            return "this engine cannot replace workers"
        now = context.view.configuration
        values: dict[Knob, Value] = {}
        for knob, value in proposal.patch.values.items():
            if math.isnan(value):
                return f"{knob}: not a number"
            clipped_value = specs[knob].clip(value)
            if isinstance(now.values.get(knob), int):
                if clipped_value != int(clipped_value):
                    return f"{knob}: {value:g} is not a whole number"
                clipped_value = int(clipped_value)
            values[knob] = clipped_value
        return with_values(proposal, values, context)


@dataclass(frozen=True, slots=True)
class MostReplaced:
    """Lets an action replace at most this share of the workers, one at least, and never all of them.

    If there are too many, it keeps those that the diagnoses name first.
    """

    # Larger replaces more slow workers at once; smaller limits the work that is lost if the diagnosis is wrong. A
    # choice: above what the built-in resolvers propose (a third), and if most workers are slow, the workers are not the
    # cause.
    share: float = 0.5
    name: str = "most replaced"

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str:
        retire = proposal.patch.retire
        if not retire:
            return proposal
        latest = context.view.window.latest
        total = len(latest.workers.ids) if latest is not None else 0
        most = min(max(1, math.floor(self.share * total)), total - 1)
        if most < 1:
            return f"{', '.join(sorted(retire))}: the only worker" if total else "the workers are not known"
        if len(retire) <= most:
            return proposal
        in_order = [worker for diagnosis in proposal.because for worker in diagnosis.workers if worker in retire]
        first = list(dict.fromkeys([*in_order, *sorted(retire)]))[:most]
        prediction = proposal.prediction
        if prediction is not None:
            prediction = replace(prediction, gain=prediction.gain * most / len(retire))
        return replace(proposal, patch=Patch(proposal.patch.values, frozenset(first)), prediction=prediction)


@dataclass(frozen=True, slots=True)
class CostLimit:
    """Lets a proposal grow as far as the cost limit allows."""

    name: str = "cost limit"

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str:
        view, limit = context.view, context.view.objective.cost_limit
        if limit is None or not proposal.patch.values:
            return proposal
        present = view.capabilities.cost(view.configuration)
        largest = max(limit, present)
        if self._cost(view, proposal.patch, 1.0) <= largest:
            return proposal
        if self._cost(view, proposal.patch, 0.0) > largest:
            return f"{limit:g} instances, {present:g} are in use"
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if self._cost(view, proposal.patch, middle) <= largest:
                low = middle
            else:
                high = middle
        trimmed_proposal = with_values(proposal, self._values(view, proposal.patch, low), context)
        return (
            trimmed_proposal
            if isinstance(trimmed_proposal, Proposal)
            else f"{limit:g} instances, {present:g} are in use"
        )

    def _cost(self, view: View, patch: Patch, part: float) -> float:
        return view.capabilities.cost(view.configuration.patched(Patch(self._values(view, patch, part))))

    @staticmethod
    def _values(view: View, patch: Patch, part: float) -> dict[Knob, Value]:
        now = view.configuration
        return {knob: _part_way(now.get(knob, value), value, part) for knob, value in patch.values.items()}


def _part_way(now: Value, target: Value, part: float) -> Value:
    if target <= now:
        return target
    value = now + (target - now) * part
    return math.floor(value) if isinstance(now, int) else value


def with_values(proposal: Proposal, values: Mapping[Knob, Value], context: GuardContext) -> Proposal | str:
    """Return the proposal with these values and an adjusted gain, or a reason if there is nothing left to change."""
    if dict(values) == dict(proposal.patch.values):
        return replace(proposal, patch=Patch(values, proposal.patch.retire))
    now = context.view.configuration
    patch = now.effective_part(Patch(values, proposal.patch.retire))
    if not patch:
        knob = next(iter(proposal.patch.values))
        return f"{knob} is at its limit of {now.get(knob, proposal.patch.values[knob])}"
    full_distance, allowed_distance = _distance(now.values, proposal.patch.values), _distance(now.values, patch.values)
    prediction = proposal.prediction
    if prediction is not None and full_distance > 0:
        prediction = replace(prediction, gain=prediction.gain * allowed_distance / full_distance)
    return replace(proposal, patch=patch, prediction=prediction)


def _distance(now: Mapping[Knob, Value], values: Mapping[Knob, Value]) -> float:
    ratios = [math.log(value / now[knob]) for knob, value in values.items() if now.get(knob) and value > 0]
    return max((abs(ratio) for ratio in ratios), default=0.0)


# A shrink is confirmed as proposed, before other guards trim it. The cool-down checks what remains.
_ORDER = (KillSwitch, OneInFlight, Bounds, MostReplaced, ConfirmShrink, LargestChange, CostLimit, CoolDown)


def guard_chain(*guards: Guard) -> tuple[Guard, ...]:
    """Return the guards in the order in which every policy applies them; guards of plug-ins come last."""
    places = {kind: place for place, kind in enumerate(_ORDER)}
    return tuple(sorted(guards, key=lambda guard: places.get(type(guard), len(_ORDER))))


DEFAULT_GUARDS = guard_chain(
    KillSwitch(), OneInFlight(), Bounds(), MostReplaced(), ConfirmShrink(), LargestChange(), CostLimit(), CoolDown()
)
