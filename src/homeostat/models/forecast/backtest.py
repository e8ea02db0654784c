"""Tests what each candidate would have forecast in the past, and how wrong it would have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.models.forecast.baselines import Forecaster, roll
from homeostat.models.forecast.series import LEAST_SEASONS, Series, known_mean

# Every candidate is tested at this many moments of the past: more compare them better, but each costs a forecast. A
# choice.
ORIGINS = 64

# With fewer origins, the errors are not a reliable estimate for the next forecast. A choice.
_LEAST_ORIGINS = 8
# Share of the origins that lie within the last horizon, where only the first steps can be checked: they show whether a
# candidate noticed the latest change. A choice.
_NEWEST_SHARE = 0.4
# The tested part of the history: at least this many horizons, and at least this share of it. A larger part leaves less
# to learn from. Choices.
_TESTED_HORIZONS, _TESTED_SHARE = 4, 1 / 3


@dataclass(frozen=True, slots=True)
class Backtest:
    """The forecasts of each candidate, one line per origin, and the `actual` values; NaN where they are still unknown.

    `now` has the forecast of each candidate at the end of the history. A candidate that could not forecast at every
    origin is left out. One that raised an error is reported in `failures`.
    """

    origins: tuple[int, ...]
    actual: Array
    past: Mapping[str, Array]
    now: Mapping[str, Array]
    failures: tuple[str, ...] = ()

    def errors(self, name: str, steps: int) -> Array:
        return np.asarray(np.abs(self.past[name][:, :steps] - self.actual[:, :steps]))

    def error(self, name: str, steps: int) -> float:
        """Return the mean absolute error over the next steps."""
        return float(known_mean(self.errors(name, steps).reshape(1, -1))[0])

    def has_enough_values(self, steps: int) -> bool:
        """Return whether enough actual values are known."""
        return int(np.isfinite(self.actual[:, :steps]).any(axis=1).sum()) >= _LEAST_ORIGINS


def values_needed(history: Series, steps: int) -> int:
    """Return how many values a backtest needs: two seasons to learn from, if there is a season, and some to test on."""
    return _training_values(history, steps) + steps + _LEAST_ORIGINS


def _training_values(history: Series, steps: int) -> int:
    return max(LEAST_SEASONS * history.day + 1, steps + _LEAST_ORIGINS)


def _first_origin(history: Series, steps: int) -> int:
    count = len(history.values)
    tested_values = max(_TESTED_HORIZONS * steps, round(_TESTED_SHARE * count))
    return min(max(_training_values(history, steps), count - tested_values), count - steps - _LEAST_ORIGINS)


def backtest(history: Series, steps: int, candidates: Sequence[Forecaster], most: int = ORIGINS) -> Backtest:
    """Test the candidates at origins spread over the newest part of the history.

    Some origins lie near its end, where only the first steps can be checked.
    """
    count = len(history.values)
    first, last = _first_origin(history, steps), count - steps
    whole = np.linspace(first, last, round((1 - _NEWEST_SHARE) * most))
    newest = np.linspace(last, count - 1, round(_NEWEST_SHARE * most))
    origins = tuple(int(origin) for origin in np.unique(np.concatenate([whole, newest]).astype(np.int64)))
    extended_values = np.concatenate([history.values, np.full(steps, NAN)])
    actual = np.stack([extended_values[origin : origin + steps] for origin in origins])
    past, now, failures = {}, {}, []
    for each in candidates:
        try:
            lines = bridge_gaps(roll(each, history, (*origins, count), steps).reshape(len(origins) + 1, steps))
        except Exception as error:  # a plug-in must not stop the others
            failures.append(f"{each.name} failed and was skipped: {type(error).__name__}: {error}")
            continue
        if np.isfinite(lines).all():
            past[each.name], now[each.name] = lines[:-1], lines[-1]
    return Backtest(origins, actual, past, now, tuple(failures))


def bridge_gaps(lines: Array) -> Array:
    """Interpolate the steps of each line that are unknown because of a gap in the history."""
    for line in lines:
        is_known = np.isfinite(line)
        if is_known.any() and not is_known.all():
            line[~is_known] = np.interp(np.flatnonzero(~is_known), np.flatnonzero(is_known), line[is_known])
    return lines
