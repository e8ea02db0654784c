"""Chooses among the proposals of the resolvers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from homeostat.core.findings import Proposal
from homeostat.core.guards import GuardContext


class Refusal(NamedTuple):
    """Why a proposal is not carried out now.

    `ground` is the guard or rule that speaks against it, and stays the same while `detail` changes with the figures.
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


@dataclass(frozen=True, slots=True)
class RankedArbiter:
    """Takes the best expected net benefit first: success rate × probability × benefit − cost, one action per scope.

    Below `act_above` the loop gathers evidence. After `patience_s` it takes the cheapest reversible action, so that it
    does not wait for ever.
    """

    # The probability of a cause from which the loop acts: higher is right more often and acts later. A choice.
    act_above: float = 0.6
    # How long evidence is gathered: longer is surer, and the problem lasts longer. A choice.
    patience_s: float = 300.0

    def choose(
        self,
        proposals: Sequence[Proposal],
        context: GuardContext,
        success_rate: Callable[[Proposal], float],
        check: Check,
    ) -> Choice:
        def net(proposal: Proposal) -> float:
            return success_rate(proposal) * proposal.probability * proposal.benefit - proposal.cost

        sure = sorted((p for p in proposals if p.probability >= self.act_above), key=net, reverse=True)
        unsure = [p for p in proposals if p.probability < self.act_above]
        patient = [p for p in unsure if p.reversible and self._standing_s(p, context) >= self.patience_s]
        patient.sort(key=lambda p: (p.cost, -p.probability))
        rejections = [
            (p, Refusal("gathering evidence", f"probability {p.probability:.2f} is below {self.act_above:.2f}"))
            for p in unsure
            if p not in patient
        ]
        chosen, refusals = _first_per_scope([*sure, *patient], context, check)
        return Choice(chosen, (*refusals, *rejections))

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
