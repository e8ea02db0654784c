"""The forecast of the candidate that would have been best, with its error; and whether it is worth acting upon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import NAN, Array
from homeostat.models.forecast.backtest import ORIGINS, Backtest, backtest, needed
from homeostat.models.forecast.baselines import LAST_VALUE, NAIVE, Forecaster, LastValue, SeasonalNaive, WeeklyNaive
from homeostat.models.forecast.daily_profile import Profile
from homeostat.models.forecast.holt_winters import HoltWinters
from homeostat.models.forecast.intervals import Errors
from homeostat.models.forecast.regression import Regression
from homeostat.models.forecast.series import MOST_POINTS, Series, known_mean

CANDIDATES: tuple[Forecaster, ...] = (
    LastValue(),
    SeasonalNaive(),
    WeeklyNaive(),
    HoltWinters(),
    Profile(),
    Regression(),
)
QUANTILES = (0.1, 0.5, 0.9)

_AS_GOOD = 0.98
_CLEARLY = 0.95
_SURE = 1.0
_UNTESTED = "the newest part of the history, which would test it, is unknown"


@dataclass(frozen=True, slots=True)
class Score:
    """A candidate in the backtest: mean absolute error over the horizon, as such and as MASE.

    MASE is that error ÷ the mean change of the load from one season to the next (from one step to the next, where
    there is no season), all over the history.
    """

    name: str
    error_per_s: float
    mase: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """`values` has a line for each step and a column for each quantile. The line i is about the step that begins at
    `made_at_s + i · step_s`.

    `usable` says whether it is clearly better than to assume that the load stays as it is; `reason` says why.
    `coverage` is the share of the backtest that lay between the outermost quantiles, which aim at `nominal`.
    """

    made_at_s: float
    step_s: float
    quantiles: tuple[float, ...]
    values: Array
    champion: str
    usable: bool
    reason: str
    origins: int = 0
    season_s: float = 0.0
    coverage: float = NAN
    scores: tuple[Score, ...] = ()
    history_s: float = 0.0
    repairs: tuple[str, ...] = field(default=())

    @property
    def horizon_s(self) -> float:
        return self.step_s * len(self.values)

    @property
    def nominal(self) -> float:
        return max(self.quantiles) - min(self.quantiles)

    @property
    def mase(self) -> float:
        return next((score.mase for score in self.scores if score.name == self.champion), NAN)

    def at(self, ahead_s: float, quantile: float = 0.5) -> float:
        """The rate so long after it was made."""
        return float(self.column(quantile)[self._step(ahead_s)])

    def highest(self, ahead_s: float, quantile: float = 0.5) -> float:
        """The highest rate until then."""
        return float(self.column(quantile)[: self._step(ahead_s) + 1].max())

    def column(self, quantile: float) -> Array:
        if quantile not in self.quantiles:
            raise ConfigError(
                f"the forecast has no quantile {quantile:g}",
                fix=f"ask for it: it has {', '.join(map(str, self.quantiles))}",
            )
        return np.asarray(self.values[:, self.quantiles.index(quantile)])

    def _step(self, ahead_s: float) -> int:
        return min(len(self.values) - 1, max(0, math.ceil(ahead_s / self.step_s) - 1))


def forecast(
    history: Series,
    horizon_s: float,
    *,
    quantiles: Sequence[float] = QUANTILES,
    candidates: Sequence[Forecaster] = CANDIDATES,
    most_origins: int = ORIGINS,
) -> Forecast:
    """The next `horizon_s`; the candidate speaks whose mean error over that horizon was smallest in the backtest."""
    return forecasts(history, [horizon_s], quantiles=quantiles, candidates=candidates, most_origins=most_origins)[0]


def forecasts(
    history: Series,
    horizons_s: Sequence[float],
    *,
    quantiles: Sequence[float] = QUANTILES,
    candidates: Sequence[Forecaster] = CANDIDATES,
    most_origins: int = ORIGINS,
) -> list[Forecast]:
    """One for each horizon, each with a champion of its own, from a single backtest.

    A candidate that is slow may say in `most_origins` at how many moments of the past it can be tried.
    """
    steps = [max(1, math.ceil(horizon_s / history.step_s - 1e-9)) for horizon_s in horizons_s]
    wanted = tuple(sorted({*quantiles, 0.5}))
    if len(history.values) > MOST_POINTS or not np.isfinite(history.values[:1]).all():
        history = history.newest()
    if len(history.values) < needed(history, max(steps)):
        history = replace(history, day=0, week=0)  # the season cannot be learned and tested yet
    least = needed(history, max(steps))
    if history.known < least / 2 or len(history.values) < least:
        return [_unusable(history, each, wanted, _too_short(history, each, least)) for each in steps]
    others = [each for each in candidates if each.name != LAST_VALUE]
    most = min([most_origins, *(getattr(each, "most_origins", most_origins) for each in others)])
    trials = backtest(history, max(steps), [LastValue(), *others], most)
    return [
        _best(history, trials, each, wanted) if trials.tested(each) else _unusable(history, each, wanted, _UNTESTED)
        for each in steps
    ]


def season_scale(history: Series) -> float:
    """The mean change from one season to the next: what MASE is in units of."""
    lag = history.day or 1
    changes = np.abs(history.values[lag:] - history.values[:-lag])
    known = changes[np.isfinite(changes)]
    return float(known.mean()) if len(known) else NAN


def _best(history: Series, trials: Backtest, steps: int, quantiles: tuple[float, ...]) -> Forecast:
    scale = season_scale(history)
    errors = {name: trials.error(name, steps) for name in trials.past}
    scores = [Score(name, error, error / scale if scale > 0 else NAN) for name, error in errors.items()]
    champion = _champion(errors)
    usable, reason = _verdict(trials, errors, champion, steps)
    said, actual = trials.past[champion][:, :steps], trials.actual[:, :steps]
    off = Errors(said, actual)
    return Forecast(
        made_at_s=history.end_s,
        step_s=history.step_s,
        quantiles=quantiles,
        values=_around(trials.now[champion][:steps], off, quantiles),
        champion=champion,
        usable=usable,
        reason=reason,
        origins=len(trials.origins),
        season_s=history.day * history.step_s,
        coverage=off.coverage(said, actual, quantiles[0], quantiles[-1]),
        scores=tuple(sorted(scores, key=lambda score: score.error_per_s)),
        history_s=history.step_s * len(history.values),
        repairs=(*history.repairs, *trials.failures),
    )


def _around(expected: Array, off: Errors, quantiles: tuple[float, ...]) -> Array:
    """Quantiles that hold the forecast between them, also one that has always been too high or too low."""
    values, middle = off.quantiles(expected, quantiles), quantiles.index(0.5)
    line = expected[:, np.newaxis]
    return np.hstack([np.minimum(values[:, :middle], line), line, np.maximum(values[:, middle + 1 :], line)])


def _champion(errors: Mapping[str, float]) -> str:
    """The best one, unless a naive one is as good."""
    best = min(errors, key=lambda name: errors[name])
    naive = min((name for name in NAIVE if name in errors), key=lambda name: errors[name])
    return naive if errors[best] > _AS_GOOD * errors[naive] or errors[naive] <= 0 else best


def _verdict(trials: Backtest, errors: Mapping[str, float], champion: str, steps: int) -> tuple[bool, str]:
    if champion == LAST_VALUE:
        return False, "not usable: to assume that the load stays as it is does as well"
    ratio = f"{errors[champion] / errors[LAST_VALUE]:.2f}" if errors[LAST_VALUE] > 0 else "1"
    if not _clearly_better(trials, champion, LAST_VALUE, steps):
        return False, f"not usable: its error is {ratio} of that of the last value, which is as good"
    return True, f"its error is {ratio} of that of the last value"


def _clearly_better(trials: Backtest, name: str, other: str, steps: int) -> bool:
    """By a twentieth at least, and by more than its standard error. Horizons overlap, so origins count for less."""
    ours, theirs = (known_mean(trials.errors(each, steps)) for each in (name, other))
    ours, theirs = ours[np.isfinite(ours)], theirs[np.isfinite(theirs)]
    gain = theirs - ours
    span = trials.origins[-1] - trials.origins[0]
    independent = max(2.0, min(float(len(gain)), span / steps))
    return bool(ours.mean() <= _CLEARLY * theirs.mean() and gain.mean() > _SURE * gain.std() / math.sqrt(independent))


def _too_short(history: Series, steps: int, least: int) -> str:
    needed_s, horizon_s, there_s = (count * history.step_s for count in (least, steps, history.known))
    return (
        f"{_duration(needed_s)} of history is needed for a horizon of {_duration(horizon_s)}, "
        f"there is {_duration(there_s)}"
    )


def _unusable(history: Series, steps: int, quantiles: tuple[float, ...], why: str) -> Forecast:
    """The last value, without an interval: nothing is known about how wrong it may be."""
    values = np.full((steps, len(quantiles)), NAN)
    values[:, quantiles.index(0.5)] = LastValue().ahead(history, steps)
    return Forecast(
        made_at_s=history.end_s,
        step_s=history.step_s,
        quantiles=quantiles,
        values=values,
        champion=LAST_VALUE,
        usable=False,
        reason=f"not usable: {why}",
        season_s=history.day * history.step_s,
        history_s=history.step_s * len(history.values),
        repairs=history.repairs,
    )


def _duration(seconds: float) -> str:
    for unit, length_s in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length_s:
            return f"{seconds / length_s:.3g} {unit}"
    return f"{seconds:.3g} s"
