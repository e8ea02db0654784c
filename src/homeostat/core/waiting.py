"""Whether to act now or to wait for one more batch, which brings more evidence while the loss goes on.

The later gain of an action is the same now and one batch later, so it cancels out. What remains:

- waiting costs probability × recoverable time, once;
- acting costs (1 − probability) × what a wrong action costs, if the next batch would have shown that it is wrong.

After n batches that agree, the chance that the next one does not is taken to be 1 ÷ (n + 1), as in the rule of
succession. It falls with every batch, so that waiting ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Proposal
from homeostat.core.guards import GuardContext
from homeostat.core.wording import span

# A wrong action that can be reverted pauses the application twice: when it is applied and when it is reverted.
_THERE_AND_BACK = 2.0


@dataclass(frozen=True, slots=True)
class Stakes:
    """`gain_s`: how much shorter each batch would be. `wrong_s`: for how long a wrong action stops the application.
    `batches`: how many batches in a row support the diagnosis."""

    probability: float
    gain_s: float
    wrong_s: float
    batches: int

    @property
    def waiting_s(self) -> float:
        """What waiting for one more batch is expected to lose."""
        return self.probability * self.gain_s

    @property
    def acting_s(self) -> float:
        """What acting before that batch is expected to lose."""
        return (1.0 - self.probability) * self.wrong_s / (self.batches + 1)

    @property
    def should_wait(self) -> bool:
        return self.acting_s > self.waiting_s

    def summary(self) -> str:
        """Why the loop waits for the next batch."""
        return (
            f"waiting is expected to lose {span(self.waiting_s)}, acting now {span(self.acting_s)} "
            f"(probability {self.probability:.2f})"
        )


def stakes(proposal: Proposal, context: GuardContext) -> Stakes | None:
    """The possible gain and loss; None if the recoverable time is not known."""
    gain_s = max((diagnosis.evidence.recoverable_s or 0.0 for diagnosis in proposal.because), default=0.0)
    if not gain_s > 0:
        return None
    pause_s = _pause_s(proposal, context)
    wrong_s = _THERE_AND_BACK * pause_s if proposal.reversible else pause_s
    return Stakes(proposal.probability, gain_s, wrong_s, _batches(proposal, context))


def _pause_s(proposal: Proposal, context: GuardContext) -> float:
    """How long the action stops the application. Changes while it runs do not stop it."""
    view = context.view
    specs = [view.spec(knob) for knob in view.configuration.effective_part(proposal.patch).values]
    return max((spec.apply_s for spec in specs if not spec.live), default=0.0)


def _batches(proposal: Proposal, context: GuardContext) -> int:
    """A diagnosis is based on a few batches when it is made, and on every batch since then."""
    since_s = [context.standing_since_s.get((d.cause, d.component), context.view.now_s) for d in proposal.because]
    onset_s = min(since_s, default=context.view.now_s)
    return LEAST_OBSERVATIONS + sum(digest.at_s > onset_s for digest in context.view.current)
