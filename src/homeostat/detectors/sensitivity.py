"""How certain a detector must be: one setting for all detectors, in units of the measured noise."""

from __future__ import annotations

from dataclasses import dataclass

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS, NOISE_FLOOR
from homeostat.models.partition_sizes import UNEVEN_RATIO

# The utilisation that a symptom names is the mean of at most so many observations: more are steadier, fewer are newer.
# A choice.
LEVEL_OVER = 30
# A component that holds its senders back for less than this share of the time is not under pressure: a smaller share
# reports noise. Heron: 20 ms per second.
NOISE_FILTER = 0.02
# The share by which an objective may be missed before it counts: a smaller one reports noise. A choice.
SLO_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """CUSUM on whitened residuals: `slack` is subtracted from each, and `alarm` is the sum that counts as a change.

    `floor` is the smallest noise that is assumed. An instance is an outlier if it is `outlier` robust deviations and
    `ratio` times away from its peers. `least` observations are needed for any symptom.
    """

    # Subtracted from each residual. A larger slack ignores more noise and finds a small overload later; an overload
    # does more harm than a false alarm. A choice; `homeostat bench noise` counts the actions that noise alone causes.
    slack: float = 0.1
    # The same for shrinking, which can wait. From the theory of CUSUM: half a deviation is best for a shift by one.
    shrink_slack: float = 0.5
    # The sum at which the load has risen: lower is sooner and more often wrong. A choice, checked like `slack`.
    alarm: float = 10.0
    # The sum at which the load has fallen: higher than for a rise, because a wrong shrink does more harm than a late
    # one. Measured on AR(0.7) noise, and checked like `slack`.
    shrink_alarm: float = 13.0
    # In ln: a series without noise would make every small step an alarm. A choice, as in the judge of outcomes.
    floor: float = NOISE_FLOOR
    # Deviations as the median absolute deviation measures them: fewer find more skew, and more chance. A choice.
    outlier: float = 4.0
    ratio: float = UNEVEN_RATIO
    least: int = LEAST_OBSERVATIONS
