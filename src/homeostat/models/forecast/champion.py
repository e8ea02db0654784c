"""Forecasts with the candidate that would have been best so far, and says whether the forecast is worth acting on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import NAN, Array
from homeostat.models.forecast.backtest import ORIGINS, Backtest, backtest, values_needed
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

# A candidate must have at most this share of the best naive error to be preferred: a naive forecast fails less often.
# A choice.
_BETTER_THAN_NAIVE = 0.98
# A forecast is acted on only if its error is at most this share of the last value's, and the gain exceeds this many
# standard errors. Stricter limits act ahead less often; looser ones act on chance. Choices.
_CLEARLY_BETTER, _GAIN_ERRORS = 0.95, 1.0
_UNTESTED = "the newest part of the history, which is needed to test the forecast, is missing"


@dataclass(frozen=True, slots=True)
class Score:
    """The mean absolute error of a candidate over the horizon in the backtest, in rows/s and as MASE.

    MASE is that error ÷ the mean change of the load from one season to the next, over the whole history. Without a
    season it is the change from one step to the next.
    """

    name: str
    error_per_s: float
    mase: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """`values` has one line per step and one column per quantile. Line i starts at `made_at_s + i · step_s`.

    `usable` says whether the forecast is clearly better than assuming that the load stays the same; `reason` says why.
    `coverage` is the share of the backtest that lay between the outermost quantiles; it should be `nominal`.
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
        """Return the rate `ahead_s` after the forecast was made."""
        return float(self.column(quantile)[self._step(ahead_s)])

    def highest(self, ahead_s: float, quantile: float = 0.5) -> float:
        """Return the highest rate until `ahead_s` after the forecast was made."""
        return float(self.column(quantile)[: self._step(ahead_s) + 1].max())

    def column(self, quantile: float) -> Array:
        if quantile not in self.quantiles:
            raise ConfigError(
                f"the forecast has no quantile {quantile:g}",
                fix=f"use one of its quantiles: {', '.join(map(str, self.quantiles))}",
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
    """Forecast the next `horizon_s` with the candidate that had the smallest mean error over it in the backtest."""
    return forecasts(history, [horizon_s], quantiles=quantiles, candidates=candidates, most_origins=most_origins)[0]


def forecasts(
    history: Series,
    horizons_s: Sequence[float],
    *,
    quantiles: Sequence[float] = QUANTILES,
    candidates: Sequence[Forecaster] = CANDIDATES,
    most_origins: int = ORIGINS,
) -> list[Forecast]:
    """Return one forecast per horizon, each with its own champion, from a single backtest.

    A slow candidate may have an attribute `most_origins`, which limits the number of past moments at which it is
    tested.
    """
    steps = [max(1, math.ceil(horizon_s / history.step_s - 1e-9)) for horizon_s in horizons_s]
    levels = tuple(sorted({*quantiles, 0.5}))
    if len(history.values) > MOST_POINTS or not np.isfinite(history.values[:1]).all():
        history = history.newest()
    if len(history.values) < values_needed(history, max(steps)):
        history = replace(history, day=0, week=0)  # too short to learn and test a season
    least = values_needed(history, max(steps))
    if history.known_count < least / 2 or len(history.values) < least:
        return [_unusable(history, each, levels, _too_short(history, each, least)) for each in steps]
    others = [each for each in candidates if each.name != LAST_VALUE]
    most = min([most_origins, *(getattr(each, "most_origins", most_origins) for each in others)])
    trials = backtest(history, max(steps), [LastValue(), *others], most)
    return [
        _best(history, trials, each, levels)
        if trials.has_enough_values(each)
        else _unusable(history, each, levels, _UNTESTED)
        for each in steps
    ]


def season_scale(history: Series) -> float:
    """Return the mean change from one season to the next: the unit of MASE."""
    lag = history.day or 1
    changes = np.abs(history.values[lag:] - history.values[:-lag])
    known_changes = changes[np.isfinite(changes)]
    return float(known_changes.mean()) if len(known_changes) else NAN


def _best(history: Series, trials: Backtest, steps: int, quantiles: tuple[float, ...]) -> Forecast:
    scale = season_scale(history)
    errors = {name: trials.error(name, steps) for name in trials.past}
    scores = [Score(name, error, error / scale if scale > 0 else NAN) for name, error in errors.items()]
    champion = _champion(errors)
    usable, reason = _usability(trials, errors, champion, steps)
    past, actual = trials.past[champion][:, :steps], trials.actual[:, :steps]
    past_errors = Errors(past, actual)
    return Forecast(
        made_at_s=history.end_s,
        step_s=history.step_s,
        quantiles=quantiles,
        values=_around(trials.now[champion][:steps], past_errors, quantiles),
        champion=champion,
        usable=usable,
        reason=reason,
        origins=len(trials.origins),
        season_s=history.day * history.step_s,
        coverage=past_errors.coverage(past, actual, quantiles[0], quantiles[-1]),
        scores=tuple(sorted(scores, key=lambda score: score.error_per_s)),
        history_s=history.step_s * len(history.values),
        repairs=(*history.repairs, *trials.failures),
    )


def _around(expected: Array, past_errors: Errors, quantiles: tuple[float, ...]) -> Array:
    """Quantiles on both sides of the forecast, even if all past forecasts were too high or all were too low."""
    values, middle = past_errors.quantiles(expected, quantiles), quantiles.index(0.5)
    line = expected[:, np.newaxis]
    return np.hstack([np.minimum(values[:, :middle], line), line, np.maximum(values[:, middle + 1 :], line)])


def _champion(errors: Mapping[str, float]) -> str:
    """The best candidate, unless a naive one is as good."""
    best = min(errors, key=lambda name: errors[name])
    naive = min((name for name in NAIVE if name in errors), key=lambda name: errors[name])
    return naive if errors[best] > _BETTER_THAN_NAIVE * errors[naive] or errors[naive] <= 0 else best


def _usability(trials: Backtest, errors: Mapping[str, float], champion: str, steps: int) -> tuple[bool, str]:
    if champion == LAST_VALUE:
        return False, "not usable: assuming that the load stays the same is as good"
    ratio = f"{errors[champion] / errors[LAST_VALUE]:.2f}" if errors[LAST_VALUE] > 0 else "1"
    if not _clearly_better(trials, champion, LAST_VALUE, steps):
        return (
            False,
            f"not usable: its error, {ratio} × that of repeating the last value, is not clearly smaller",
        )
    return True, f"its error is {ratio} × that of repeating the last value"


def _clearly_better(trials: Backtest, name: str, other: str, steps: int) -> bool:
    """Whether one candidate beats another by enough, and by more than chance. Horizons overlap, so fewer origins count
    as independent."""
    ours, theirs = (known_mean(trials.errors(each, steps)) for each in (name, other))
    ours, theirs = ours[np.isfinite(ours)], theirs[np.isfinite(theirs)]
    gain = theirs - ours
    span = trials.origins[-1] - trials.origins[0]
    independent = max(2.0, min(float(len(gain)), span / steps))
    return bool(
        ours.mean() <= _CLEARLY_BETTER * theirs.mean()
        and gain.mean() > _GAIN_ERRORS * gain.std() / math.sqrt(independent)
    )


def _too_short(history: Series, steps: int, least: int) -> str:
    needed_s, horizon_s, there_s = (count * history.step_s for count in (least, steps, history.known_count))
    return (
        f"a horizon of {_duration(horizon_s)} needs {_duration(needed_s)} of history, "
        f"but there is only {_duration(there_s)}"
    )


def _unusable(history: Series, steps: int, quantiles: tuple[float, ...], why: str) -> Forecast:
    """The last value without an interval, because its error is unknown."""
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
