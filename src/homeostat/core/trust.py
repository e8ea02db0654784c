"""How far predictions have been off for each component, to decide whether to rely on a model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from homeostat.core.findings import Outcome

# The weight of the newest action in the mean error: more reacts sooner, less is steadier. A choice.
_NEWEST = 0.5
_PROVING = ("helped", "harmful", "failed", "unclear", "shrunk")


@dataclass(frozen=True, slots=True)
class Trust:
    """`off` is the mean of |observed − predicted| gain of judged actions, in which the newest counts half.

    `error` is the same without the part that noise explains, and `actions` the number of actions. A gain is ln(time
    before ÷ after), so an error of 0.1 is about ten per cent of the time.
    """

    error: float
    actions: int
    off: float = 0.0


Trusts = Mapping[str, Trust]


def with_outcome(trusts: Trusts, component: str, outcome: Outcome) -> Trusts:
    """Return the trusts after one more judged action. What noise explains is not an error of the model."""
    off = abs(outcome.observed_gain - outcome.predicted_gain)
    if outcome.verdict not in _PROVING or not math.isfinite(off):
        return trusts
    doubt = outcome.standard_error if math.isfinite(outcome.standard_error) else 0.0
    error = max(0.0, off - doubt)
    before = trusts.get(component)
    if before is not None:
        error = _NEWEST * error + (1.0 - _NEWEST) * before.error
        off = _NEWEST * off + (1.0 - _NEWEST) * before.off
    return {**trusts, component: Trust(error, (before.actions if before is not None else 0) + 1, off)}
