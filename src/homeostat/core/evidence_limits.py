"""Limits on how little evidence a decision may rest on, shared by every part that decides."""

from __future__ import annotations

# Observations in a row that must agree before they count as evidence. Fewer react faster but mistake one odd batch for
# a change: two can agree by chance. A choice.
LEAST_OBSERVATIONS = 3
# From this share of the trigger interval on (of the batch, without one), lost time is reported. A smaller share reports
# losses that do not matter; a larger one misses losses that slowly fill the interval. A choice.
WORTH_NAMING = 0.1
# The share of the time that a batch may take from which it is nearly late: below it, a usual loss does no harm. A
# choice.
NEARLY_LATE = 0.8
# The share of a component's tasks that must have been measured to speak for all of them. A smaller share would accept
# more batches, but the tasks without a measurement could be the slow ones. A choice.
LEAST_KNOWN = 0.5
# In ln(time or load), about 5 %: the smallest noise that is assumed. A lower floor finds smaller changes, but takes
# rounding and one-off effects of a quiet series for changes. A choice.
NOISE_FLOOR = 0.05
# The standard error of a median over that of a mean, for normal noise: the square root of π/2. Statistics.
MEDIAN_ERROR = 1.25
# An observation that begins later than this share of its length after the one before it leaves a gap: clocks and
# triggers jitter, but a missing observation leaves a gap of its whole length. A choice.
GAP_SHARE = 0.5
# A lag-1 correlation above this leaves almost nothing new in each value, so that standard errors explode. A choice.
LARGEST_CORRELATION = 0.9
