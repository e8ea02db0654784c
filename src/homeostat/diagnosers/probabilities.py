"""The probabilities that diagnosers give to causes where no model is fitted.

The arbiter multiplies the benefit of an action by them. A higher value makes the loop act sooner on that kind of
evidence, a lower one makes it wait for more. Each has a reason. Where recorded runs say how often such evidence was
right, the reason has the count: batches of the recorded corpus (`homeostat bench diagnosis --corpus`) in which a
diagnosis with this probability stood, and in how many of them the cause had been injected. The counts are small and
batches of a run are alike, so values are rounded to what such counts can tell apart.
"""

from __future__ import annotations

import math

# Nothing points to the cause. It is not zero, because a sensor may have missed it: as unlikely as a report is wrong.
NO_SIGN = 0.05
# The cause could be true, but the metric that would show it is missing. One of three causes explains pressure (too few
# instances, a slow one, skew), so that each is as likely as the others; and below `likely`, so it is not named.
NOT_MEASURED = 0.3
# Even odds.
EVEN_ODDS = 0.5
# The measurements fit the cause, but they also fit a harmless reason (state that grows because the load does). More
# likely than not, and above the usual `act_above`, because the alert costs a person a look and being silent costs a
# crash.
FITS = 0.7
# Nothing else explains the measurements: as sure as that the others were rightly excluded. Between `FITS`, where
# another reason is left, and `EFFECT_SHOWN`, where an effect is measured.
BY_ELIMINATION = 0.75
# A measurement shows the effect, but not what made it. Most diagnoses from an effect were right: slow instances 10 of
# 14 from 0.8 on, too few executors 14 of 17.
EFFECT_SHOWN = 0.8
# A detector that looks for this cause only has found it: admission limits 19 of 19. By the rule of succession that is
# 0.95; less, because all of them come from two runs.
SHOWN = 0.9
# The engine itself reports the cause: failing tasks, poison rows, dying executors and stalled watermarks 13 of 13, and
# skew of measured rows 29 of 29. By the rule of succession together 0.98. It is less, because a report can be stale.
REPORTED = 0.95
# From even odds to `REPORTED`, or down to `NO_SIGN`.
_SWING = 0.45


def sureness(value: float, middle: float, width: float) -> float:
    """The probability that a measured value gives to a cause: 0.05 … 0.95, one half at `middle`.

    A smaller `width` makes it jump at `middle`; a larger one lets it rise slowly.
    """
    return EVEN_ODDS + _SWING * math.tanh((value - middle) / width)
