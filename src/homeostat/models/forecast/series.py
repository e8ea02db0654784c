"""A load over time on a regular grid, made from times and rates as they come: irregular, doubled, missing, absurd."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from homeostat.core.observation import NAN, Array
from homeostat.core.stats import median

BoolArray = NDArray[np.bool_]

DAY_S = 86_400.0
WEEK_DAYS = 7
LEAST_SEASONS = 2
MOST_POINTS = 10_080
MOST_STEPS_AHEAD = 400
# Each divides a day, so that a day is a whole number of steps.
STEPS_S = tuple(
    [1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0]
    + [60.0 * minutes for minutes in (1, 2, 5, 10, 15, 20, 30)]
    + [3600.0 * hours for hours in (1, 2, 3, 4, 6, 8, 12, 24)]
)

_SAME = 0.99
_FASTEST_PER_S = 1e15
_ABSURD = 1000.0
_RARE = 0.001
_ENOUGH_S = 35 * DAY_S
_STEPS_OF_HORIZON = 8
_SHORTEST_SEASON = 12
_CLEAR_SEASON = 0.3
_AS_HIGH = 0.9


@dataclass(frozen=True, slots=True)
class Series:
    """Value i is the mean rate from `start_s + i · step_s` on, for one step; NaN where nothing is known.

    `day` and `week` are lengths in steps, 0 for one that the history does not show at least twice. `repairs` tells
    what was left out.
    """

    start_s: float
    step_s: float
    values: Array
    day: int = 0
    week: int = 0
    repairs: tuple[str, ...] = ()

    @property
    def end_s(self) -> float:
        return self.start_s + self.step_s * len(self.values)

    @property
    def known(self) -> int:
        return int(np.isfinite(self.values).sum())

    def newest(self, most: int = MOST_POINTS) -> Series:
        """At most so many of the values, from a known one on."""
        known = np.flatnonzero(np.isfinite(self.values[-most:]))
        left_out = max(0, len(self.values) - most) + (int(known[0]) if len(known) else 0)
        start_s = self.start_s + left_out * self.step_s
        return with_seasons(replace(self, start_s=start_s, values=self.values[left_out:]))

    def until(self, count: int) -> Series:
        """The first `count` values; a season that they do not show twice is not known to them."""
        day, week = (season if count >= LEAST_SEASONS * season else 0 for season in (self.day, self.week))
        return replace(self, values=self.values[:count], day=day, week=week)


def regular(
    times_s: ArrayLike, per_s: ArrayLike, *, horizon_s: float, step_s: float | None = None, most: int = MOST_POINTS
) -> Series:
    """The rates on a grid whose step suits their spacing and the horizon; of many, the newest `most` steps."""
    known_s, rates, repairs = _cleaned(np.asarray(times_s, dtype=np.float64), np.asarray(per_s, dtype=np.float64))
    if not len(known_s):
        return Series(0.0, step_s or STEPS_S[0], np.empty(0), repairs=repairs)
    step_s = step_s or _step_s(known_s, horizon_s)
    bins = np.floor(known_s / step_s).astype(np.int64)
    first = max(int(bins[0]), int(bins[-1]) + 1 - most)
    kept = bins >= first
    places = bins[kept] - first
    counts = np.bincount(places)
    totals = np.bincount(places, weights=rates[kept])
    values = np.full(len(counts), NAN)
    np.divide(totals, counts, out=values, where=counts > 0)
    return Series(first * step_s, step_s, values, repairs=repairs).newest(most)


def with_seasons(series: Series) -> Series:
    """Day and week by the clock; without two days of history, a season that the values themselves show clearly."""
    day = round(DAY_S / series.step_s)
    if day >= 2 and len(series.values) >= LEAST_SEASONS * day:
        week = WEEK_DAYS * day
        return replace(series, day=day, week=week if len(series.values) >= LEAST_SEASONS * week else 0)
    return replace(series, day=found_season(series.values), week=0)


def found_season(values: Array) -> int:
    """The lag at which the series is most like itself, if it clearly is: the first high peak of its correlation."""
    longest = len(values) // LEAST_SEASONS
    known = np.isfinite(values)
    if longest <= _SHORTEST_SEASON or known.sum() < len(values) / 2:
        return 0
    centred = np.where(known, values, 0.0) - median(values[known])
    centred[~known] = 0.0
    size = 1 << (2 * len(values) - 1).bit_length()
    power = np.abs(np.fft.rfft(centred, size)) ** 2
    sums = np.fft.irfft(power, size)[: longest + 1]
    if sums[0] <= 0:
        return 0
    likeness = sums / sums[0] * len(values) / (len(values) - np.arange(longest + 1))
    below = np.flatnonzero(likeness < _CLEAR_SEASON / 2)
    if not len(below):
        return 0
    later = likeness[max(int(below[0]), _SHORTEST_SEASON) :]
    if not len(later) or later.max() < _CLEAR_SEASON:
        return 0
    # Twice the season is about as high a peak; the first one counts.
    first = int(np.argmax(later >= _AS_HIGH * later.max()))
    lower = np.flatnonzero(later[first:] < _AS_HIGH * later.max())
    end = first + int(lower[0]) if len(lower) else len(later)
    return _sharpened(values, len(likeness) - len(later) + first + int(np.argmax(later[first:end])))


def _sharpened(values: Array, season: int) -> int:
    """The lag nearby at which values differ least: the correlation of a few cycles has its peak a little aside."""
    nearby = range(season - season // 10, min(season + season // 10, len(values) // LEAST_SEASONS) + 1)
    lags = nearby[:: max(1, len(nearby) // 100)]
    changes = [known_mean(np.abs(values[np.newaxis, lag:] - values[np.newaxis, :-lag]))[0] for lag in lags]
    return lags[int(np.nanargmin(changes))] if np.isfinite(changes).any() else season


def known_mean(lines: Array) -> Array:
    """Of each line, without what is unknown."""
    known = np.isfinite(lines)
    counts = known.sum(axis=1)
    means = np.full(len(lines), NAN)
    np.divide(np.where(known, lines, 0.0).sum(axis=1), counts, out=means, where=counts > 0)
    return means


def knots(steps: int, growth: float) -> list[int]:
    """Steps ahead, each so many times as far as the one before; what lies between them can be interpolated."""
    found = [1]
    while found[-1] < steps:
        found.append(min(steps, max(found[-1] + 1, round(found[-1] * growth))))
    return found


def _cleaned(times_s: Array, per_s: Array) -> tuple[Array, Array, tuple[str, ...]]:
    """By time, without what cannot be a load."""
    timed = np.isfinite(times_s)
    wrong = timed & ((per_s < 0) | (per_s > _FASTEST_PER_S))
    usable = timed & (per_s >= 0) & (per_s <= _FASTEST_PER_S)
    absurd = usable & _absurd(per_s, usable)
    repairs = [
        f"{count} {what}: left out"
        for count, what in (
            (int((~timed).sum()), "without a time"),
            (int((timed & np.isnan(per_s)).sum()), "missing"),
            (int(wrong.sum()), "negative or without bounds"),
            (int(absurd.sum()), f"more than {_ABSURD:g} times the usual peak"),
        )
        if count
    ]
    usable &= ~absurd
    order = np.argsort(times_s[usable], kind="stable")
    return times_s[usable][order], per_s[usable][order], tuple(repairs)


def _absurd(per_s: Array, usable: BoolArray) -> BoolArray:
    """Far beyond what is usual, and hardly ever; where it happens more often, it is how that source is."""
    high = float(np.quantile(per_s[usable], 0.9, method="lower")) if usable.any() else 0.0
    far = per_s > _ABSURD * high
    rare = (usable & far).sum() <= max(1.0, _RARE * usable.sum())
    return far & bool(high > 0 and rare)


def _step_s(times_s: Array, horizon_s: float) -> float:
    spacings_s = np.diff(np.unique(times_s))
    spacing_s = median(spacings_s) if len(spacings_s) else STEPS_S[0]
    span_s = float(times_s[-1] - times_s[0])
    finest_s = max(_SAME * spacing_s, horizon_s / MOST_STEPS_AHEAD)
    step_s = _at_least(finest_s)
    while MOST_POINTS * step_s < min(span_s, _ENOUGH_S) and _STEPS_OF_HORIZON * step_s < horizon_s:
        step_s = _at_least(1.01 * step_s)
    return step_s


def _at_least(seconds: float) -> float:
    return next((step_s for step_s in STEPS_S if step_s >= seconds), STEPS_S[-1])
