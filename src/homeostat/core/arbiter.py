"""Chooses among the proposals of the resolvers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from homeostat.core.findings import Proposal
from homeostat.core.guards import GuardContext
from homeostat.core.view import View
from homeostat.core.waiting import stakes


class Refusal(NamedTuple):
    """Why a proposal is not carried out now.

    `ground` is the guard or rule that rejects it. It stays the same while `detail` changes with the figures.
    """

    ground: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.ground}: {self.detail}" if self.detail else self.ground


Refused = tuple[Proposal, Refusal]
Check = Callable[[Proposal], Proposal | Refusal]


class Choice(NamedTuple):
    """The proposals to carry out, and every other one with the reason against it."""

    chosen: tuple[Proposal, ...]
    rejected: tuple[Refused, ...]


class Arbiter(Protocol):
    def choose(
        self,
        proposals: Sequence[Proposal],
        context: GuardContext,
        success_rate: Callable[[Proposal], float],
        check: Check,
    ) -> Choice:
        """Choose; `check` runs memory and guards on a proposal and returns it, trimmed, or the reason against it."""
        ...


class Composer(Protocol):
    def compose(self, view: View, remedies: Sequence[Proposal]) -> tuple[Proposal, tuple[Refused, ...]]:
        """Make one plan of the remedies, the best one first. Return the plan and the remedies that are left out."""
        ...


@dataclass(frozen=True, slots=True)
class RankedArbiter:
    """Takes the proposal with the best expected net benefit first: success rate × probability × benefit − cost. One
    action per scope. With a `composer`, the remedies of a scope become one plan.

    Below `act_above` the loop gathers evidence. Above it, it also waits for one more batch where that is expected to
    lose less than acting now (see `core/waiting.py`). After `patience_s`, it takes the cheapest reversible action, so
    that it does not wait forever.
    """

    # The probability of a cause below which the loop does not act, whatever the gain: higher is right more often and
    # acts later. A choice.
    act_above: float = 0.6
    # How long to gather evidence: longer is more certain, but the problem lasts longer. A choice.
    patience_s: float = 300.0
    composer: Composer | None = None

    def choose(
        self,
        proposals: Sequence[Proposal],
        context: GuardContext,
        success_rate: Callable[[Proposal], float],
        check: Check,
    ) -> Choice:
        def net(proposal: Proposal) -> float:
            return success_rate(proposal) * proposal.probability * proposal.benefit - proposal.cost

        reasons = {id(p): reason for p in proposals if (reason := self._reason_to_wait(p, context)) is not None}
        sure = sorted((p for p in proposals if id(p) not in reasons), key=net, reverse=True)
        unsure = [p for p in proposals if id(p) in reasons]
        patient = [p for p in unsure if p.reversible and self._standing_s(p, context) >= self.patience_s]
        patient.sort(key=lambda p: (p.cost, -p.probability))
        rejections = [(p, reasons[id(p)]) for p in unsure if p not in patient]
        ranked = [*sure, *patient]
        if self.composer is None:
            chosen, refusals = _first_per_scope(ranked, context, check)
        else:
            chosen, refusals = _one_plan_per_scope(ranked, context, check, self.composer)
        return Choice(chosen, (*refusals, *rejections))

    def _reason_to_wait(self, proposal: Proposal, context: GuardContext) -> Refusal | None:
        if proposal.probability < self.act_above:
            figures = f"probability {proposal.probability:.2f} is below {self.act_above:.2f}"
            return Refusal("gathering evidence", figures)
        at_stake = stakes(proposal, context)
        if at_stake is not None and at_stake.should_wait:
            return Refusal("waiting for one more batch", at_stake.summary())
        return None

    @staticmethod
    def _standing_s(proposal: Proposal, context: GuardContext) -> float:
        since = context.standing_since_s
        starts_s = [since.get((d.cause, d.component)) for d in proposal.because]
        return max((context.view.now_s - at_s for at_s in starts_s if at_s is not None), default=0.0)


@dataclass(frozen=True, slots=True)
class InOrderArbiter:
    """The paper's arbiter: takes the first proposal that is allowed, in the order in which the resolvers yield them."""

    def choose(
        self,
        proposals: Sequence[Proposal],
        context: GuardContext,
        success_rate: Callable[[Proposal], float],
        check: Check,
    ) -> Choice:
        chosen, refusals = _first_per_scope(proposals, context, check)
        return Choice(chosen, refusals)


def _first_per_scope(
    proposals: Sequence[Proposal], context: GuardContext, check: Check
) -> tuple[tuple[Proposal, ...], tuple[Refused, ...]]:
    chosen: dict[str, Proposal] = {}
    refusals: list[Refused] = []
    for proposal in proposals:
        scope = context.scope(proposal)
        before = context.conflicting(scope, chosen)
        if before:
            refusals.append((proposal, Refusal(f"{chosen[before[0]].kind} goes first")))
            continue
        verdict = check(proposal)
        if isinstance(verdict, Refusal):
            refusals.append((proposal, verdict))
        else:
            chosen[scope] = verdict
    return tuple(chosen.values()), tuple(refusals)


def _one_plan_per_scope(
    proposals: Sequence[Proposal], context: GuardContext, check: Check, composer: Composer
) -> tuple[tuple[Proposal, ...], tuple[Refused, ...]]:
    remedies: dict[str, list[Proposal]] = {}
    refusals: list[Refused] = []
    for proposal in proposals:
        verdict = check(proposal)
        if isinstance(verdict, Refusal):
            refusals.append((proposal, verdict))
            continue
        scope = context.scope(proposal)
        together = context.conflicting(scope, remedies)
        remedies.setdefault(together[0] if together else scope, []).append(verdict)
    chosen = []
    for its in remedies.values():
        plan, left_out = composer.compose(context.view, its)
        chosen.append(plan)
        refusals += left_out
    return tuple(chosen), tuple(refusals)
