"""How sure a detector must be. One setting for all of them, in units of the noise that is really there."""

from __future__ import annotations

from dataclasses import dataclass

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.models.partition_sizes import UNEVEN_RATIO


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """CUSUM on whitened residuals: `slack` is subtracted from each, `alarm` is the sum at which it is a change.

    `floor` is the smallest noise believed, `outlier` how many robust deviations, and `ratio` how many times its
    peers, an instance must be away from them.
    """

    slack: float = 0.1
    shrink_slack: float = 0.5
    alarm: float = 10.0
    shrink_alarm: float = 13.0
    floor: float = 0.05
    outlier: float = 4.0
    ratio: float = UNEVEN_RATIO
    least: int = LEAST_OBSERVATIONS
