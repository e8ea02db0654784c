"""A load over time on a regular grid, from times and rates that may be irregular, doubled, missing or absurd."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from homeostat.core.observation import NAN, Array
from homeostat.core.stats import median

BoolArray = NDArray[np.bool_]

DAY_S = 86_400.0
WEEK_DAYS = 7
# A season is used only if the history contains at least this many: one alone cannot be tested.
LEAST_SEASONS = 2
# The largest number of values of a series, a week of minutes: more take longer to forecast. A choice.
MOST_POINTS = 10_080
# The largest number of steps of a horizon; the grid is made coarser for longer horizons. A choice.
MOST_STEPS_AHEAD = 400
# Grid steps. Each divides a day, so that a day is a whole number of steps.
STEPS_S = tuple(
    [1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0]
    + [60.0 * minutes for minutes in (1, 2, 5, 10, 15, 20, 30)]
    + [3600.0 * hours for hours in (1, 2, 3, 4, 6, 8, 12, 24)]
)

# Spacings that differ by less than this count as equal, so that jitter does not make the grid coarser. A choice.
_SAME_SPACING = 0.99
# Larger rates are errors of measurement: no source delivers 10^15 rows/s.
_FASTEST_PER_S = 1e15
# Values above this many times the 90th percentile are errors if they are at most this share of all. More frequent ones
# belong to the source. Choices.
_ABSURD_FACTOR, _USUAL_PEAK_QUANTILE, _RARE_SHARE = 1000.0, 0.9, 0.001
# The grid is made coarser until it covers this long a history, five weeks, but keeps this many steps per horizon.
# A finer grid forecasts short horizons better. Choices.
_ENOUGH_S, _STEPS_OF_HORIZON = 35 * DAY_S, 8
# The shortest season in steps: shorter ones are hard to tell from noise. A choice.
_SHORTEST_SEASON = 12
# The autocorrelation that a season must reach. A lower one finds seasons in noise. A choice.
_CLEAR_SEASON = 0.3
# Multiples of a season correlate about as well. The first peak at least this share of the highest one is the season.
# A choice.
_NEARLY_HIGHEST = 0.9
# Lags around the peak of the correlation that are compared, as a fraction of the season and at most this many. Choices.
_NEARBY_FRACTION, _MOST_NEARBY_LAGS = 10, 100


@dataclass(frozen=True, slots=True)
class Series:
    """Value i is the mean rate during the step that starts at `start_s + i · step_s`; NaN if it is unknown.

    `day` and `week` are lengths in steps; 0 if the history does not show them at least twice. `repairs` says which
    values were left out.
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
    def known_count(self) -> int:
        return int(np.isfinite(self.values).sum())

    def newest(self, most: int = MOST_POINTS) -> Series:
        """Return at most `most` of the newest values, starting with a known one."""
        known_places = np.flatnonzero(np.isfinite(self.values[-most:]))
        left_out = max(0, len(self.values) - most) + (int(known_places[0]) if len(known_places) else 0)
        start_s = self.start_s + left_out * self.step_s
        return with_seasons(replace(self, start_s=start_s, values=self.values[left_out:]))

    def until(self, count: int) -> Series:
        """Return the first `count` values, with the seasons that they show at least twice."""
        day, week = (season if count >= LEAST_SEASONS * season else 0 for season in (self.day, self.week))
        return replace(self, values=self.values[:count], day=day, week=week)


def regular(
    times_s: ArrayLike, per_s: ArrayLike, *, horizon_s: float, step_s: float | None = None, most: int = MOST_POINTS
) -> Series:
    """Put rates on a grid whose step suits their spacing and the horizon. Keep the newest `most` steps."""
    usable_s, rates, repairs = _clean(np.asarray(times_s, dtype=np.float64), np.asarray(per_s, dtype=np.float64))
    if not len(usable_s):
        return Series(0.0, step_s or STEPS_S[0], np.empty(0), repairs=repairs)
    step_s = step_s or _step_s(usable_s, horizon_s)
    bins = np.floor(usable_s / step_s).astype(np.int64)
    first = max(int(bins[0]), int(bins[-1]) + 1 - most)
    recent = bins >= first
    places = bins[recent] - first
    counts = np.bincount(places)
    totals = np.bincount(places, weights=rates[recent])
    values = np.full(len(counts), NAN)
    np.divide(totals, counts, out=values, where=counts > 0)
    return Series(first * step_s, step_s, values, repairs=repairs).newest(most)


def with_seasons(series: Series) -> Series:
    """Add the day and the week; without two days of history, a season that the values themselves clearly show."""
    day = round(DAY_S / series.step_s)
    if day >= 2 and len(series.values) >= LEAST_SEASONS * day:
        week = WEEK_DAYS * day
        return replace(series, day=day, week=week if len(series.values) >= LEAST_SEASONS * week else 0)
    return replace(series, day=detected_season(series.values), week=0)


def detected_season(values: Array) -> int:
    """Return the first high peak of the autocorrelation; 0 if no peak is clear."""
    longest = len(values) // LEAST_SEASONS
    is_known = np.isfinite(values)
    if longest <= _SHORTEST_SEASON or is_known.sum() < len(values) / 2:
        return 0
    deviations = np.where(is_known, values, 0.0) - median(values[is_known])
    deviations[~is_known] = 0.0
    size = 1 << (2 * len(values) - 1).bit_length()
    power = np.abs(np.fft.rfft(deviations, size)) ** 2
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
    first = int(np.argmax(later >= _NEARLY_HIGHEST * later.max()))
    lower = np.flatnonzero(later[first:] < _NEARLY_HIGHEST * later.max())
    end = first + int(lower[0]) if len(lower) else len(later)
    return _sharpen(values, len(likeness) - len(later) + first + int(np.argmax(later[first:end])))


def _sharpen(values: Array, season: int) -> int:
    """The nearby lag at which values differ least: with few cycles the peak of the correlation is slightly off."""
    nearby = range(
        season - season // _NEARBY_FRACTION, min(season + season // _NEARBY_FRACTION, len(values) // LEAST_SEASONS) + 1
    )
    lags = nearby[:: max(1, len(nearby) // _MOST_NEARBY_LAGS)]
    changes = [known_mean(np.abs(values[np.newaxis, lag:] - values[np.newaxis, :-lag]))[0] for lag in lags]
    return lags[int(np.nanargmin(changes))] if np.isfinite(changes).any() else season


def known_mean(lines: Array) -> Array:
    """Return the mean of the known values of each line."""
    is_known = np.isfinite(lines)
    counts = is_known.sum(axis=1)
    means = np.full(len(lines), NAN)
    np.divide(np.where(is_known, lines, 0.0).sum(axis=1), counts, out=means, where=counts > 0)
    return means


def knots(steps: int, growth: float) -> list[int]:
    """Return steps ahead, each `growth` times as far as the one before. Values between them can be interpolated."""
    steps_ahead = [1]
    while steps_ahead[-1] < steps:
        steps_ahead.append(min(steps, max(steps_ahead[-1] + 1, round(steps_ahead[-1] * growth))))
    return steps_ahead


def _clean(times_s: Array, per_s: Array) -> tuple[Array, Array, tuple[str, ...]]:
    """Sort by time and leave out values that cannot be a load."""
    has_time = np.isfinite(times_s)
    wrong = has_time & ((per_s < 0) | (per_s > _FASTEST_PER_S))
    usable = has_time & (per_s >= 0) & (per_s <= _FASTEST_PER_S)
    absurd = usable & _absurd(per_s, usable)
    repairs = [
        f"values left out: {count} {what}"
        for count, what in (
            (int((~has_time).sum()), "without a time"),
            (int((has_time & np.isnan(per_s)).sum()), "missing"),
            (int(wrong.sum()), "negative or infinite"),
            (int(absurd.sum()), f"above {_ABSURD_FACTOR:g} times the usual peak"),
        )
        if count
    ]
    usable &= ~absurd
    order = np.argsort(times_s[usable], kind="stable")
    return times_s[usable][order], per_s[usable][order], tuple(repairs)


def _absurd(per_s: Array, usable: BoolArray) -> BoolArray:
    """Which values are far beyond the usual peak. If there are many, they belong to the source and none is absurd."""
    high = float(np.quantile(per_s[usable], _USUAL_PEAK_QUANTILE, method="lower")) if usable.any() else 0.0
    far = per_s > _ABSURD_FACTOR * high
    rare = (usable & far).sum() <= max(1.0, _RARE_SHARE * usable.sum())
    return far & bool(high > 0 and rare)


def _step_s(times_s: Array, horizon_s: float) -> float:
    spacings_s = np.diff(np.unique(times_s))
    spacing_s = median(spacings_s) if len(spacings_s) else STEPS_S[0]
    span_s = float(times_s[-1] - times_s[0])
    finest_s = max(_SAME_SPACING * spacing_s, horizon_s / MOST_STEPS_AHEAD)
    step_s = _at_least(finest_s)
    while MOST_POINTS * step_s < min(span_s, _ENOUGH_S) and _STEPS_OF_HORIZON * step_s < horizon_s:
        step_s = _at_least(1.01 * step_s)
    return step_s


def _at_least(seconds: float) -> float:
    return next((step_s for step_s in STEPS_S if step_s >= seconds), STEPS_S[-1])
