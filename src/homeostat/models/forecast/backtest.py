"""What each candidate would have said in the past, and how wrong it would have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.models.forecast.baselines import Forecaster, rolled
from homeostat.models.forecast.series import LEAST_SEASONS, Series, known_mean

ORIGINS = 64

_LEAST_ORIGINS = 8
_NEWEST = 0.4
_TESTED_HORIZONS = 4
_TESTED = 1 / 3


@dataclass(frozen=True, slots=True)
class Backtest:
    """For each candidate a line of forecasts for each origin, beside what came; NaN where nothing has come yet.

    `now` holds what each of them says at the end of the history. A candidate that had nothing to say at one of the
    origins is not in; one that failed is told in `failures`.
    """

    origins: tuple[int, ...]
    actual: Array
    past: Mapping[str, Array]
    now: Mapping[str, Array]
    failures: tuple[str, ...] = ()

    def errors(self, name: str, steps: int) -> Array:
        return np.asarray(np.abs(self.past[name][:, :steps] - self.actual[:, :steps]))

    def error(self, name: str, steps: int) -> float:
        """Mean absolute error over the next steps."""
        return float(known_mean(self.errors(name, steps).reshape(1, -1))[0])

    def tested(self, steps: int) -> bool:
        """Whether enough of what came is known."""
        return int(np.isfinite(self.actual[:, :steps]).any(axis=1).sum()) >= _LEAST_ORIGINS


def needed(history: Series, steps: int) -> int:
    """How many values a backtest needs: to learn from, a season twice if there is one, and to be tested on."""
    return _learned(history, steps) + steps + _LEAST_ORIGINS


def _learned(history: Series, steps: int) -> int:
    return max(LEAST_SEASONS * history.day + 1, steps + _LEAST_ORIGINS)


def _first_origin(history: Series, steps: int) -> int:
    count = len(history.values)
    tested = max(_TESTED_HORIZONS * steps, round(_TESTED * count))
    return min(max(_learned(history, steps), count - tested), count - steps - _LEAST_ORIGINS)


def backtest(history: Series, steps: int, candidates: Sequence[Forecaster], most: int = ORIGINS) -> Backtest:
    """Origins spread over the newest part of the history, some of them near its end, where only the first steps are
    known."""
    count = len(history.values)
    first, last = _first_origin(history, steps), count - steps
    whole = np.linspace(first, last, round((1 - _NEWEST) * most))
    newest = np.linspace(last, count - 1, round(_NEWEST * most))
    origins = tuple(int(origin) for origin in np.unique(np.concatenate([whole, newest]).astype(np.int64)))
    extended = np.concatenate([history.values, np.full(steps, NAN)])
    actual = np.stack([extended[origin : origin + steps] for origin in origins])
    past, now, failures = {}, {}, []
    for each in candidates:
        try:
            lines = bridged(rolled(each, history, (*origins, count), steps).reshape(len(origins) + 1, steps))
        except Exception as error:  # a plug-in's; the others still speak
            failures.append(f"{each.name} failed and is left out: {type(error).__name__}: {error}")
            continue
        if np.isfinite(lines).all():
            past[each.name], now[each.name] = lines[:-1], lines[-1]
    return Backtest(origins, actual, past, now, tuple(failures))


def bridged(lines: Array) -> Array:
    """Steps about which a line says nothing, because a gap hides them, are taken from their neighbours."""
    for line in lines:
        known = np.isfinite(line)
        if known.any() and not known.all():
            line[~known] = np.interp(np.flatnonzero(~known), np.flatnonzero(known), line[known])
    return lines
