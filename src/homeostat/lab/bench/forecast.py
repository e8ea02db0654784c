"""Measures how good forecasts are: on recorded loads, at moments after which the load is hidden from them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.models.forecast import CANDIDATES, Forecast, Forecaster, Series, forecasts, regular
from homeostat.models.forecast.backtest import bridge_gaps
from homeostat.models.forecast.baselines import roll
from homeostat.models.forecast.champion import season_scale
from homeostat.recorded_data.load import Load
from homeostat.strict.units import format_duration

HORIZONS_S = (900.0, 3600.0, 6 * 3600.0, 86_400.0)
ORIGINS = 24
NOMINAL = 0.8
CHAMPION = "champion"

_LEARNED = 0.4
_LONGEST = 0.25
_MOST_POINTS = 1_000_000
_QUANTILES = ((1 - NOMINAL) / 2, 0.5, (1 + NOMINAL) / 2)


@dataclass(slots=True)
class _Tally:
    """The errors at all origins of one trace, for one horizon. An origin is a moment at which a forecast is made."""

    mase: dict[str, list[float]] = field(default_factory=dict)
    inside: list[float] = field(default_factory=list)
    champions: list[str] = field(default_factory=list)
    usable: int = 0


def measure(
    loads: Iterable[Load],
    *,
    horizons_s: Sequence[float] = HORIZONS_S,
    origins: int = ORIGINS,
    candidates: Sequence[Forecaster] = CANDIDATES,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The numbers of `homeostat bench forecast`."""
    traces: dict[str, Any] = {}
    for load in loads:
        tell(f"{load.name}: forecasts at {origins} moments, {format_duration(max(horizons_s))} ahead")
        traces[load.name] = _trace(load, sorted(horizons_s), origins, candidates)
    return {
        "nominal_coverage": NOMINAL,
        "traces": traces,
        **_summary([cell for trace in traces.values() for cell in trace["horizons"].values()]),
        "worst": _worst(traces),
    }


def _trace(load: Load, horizons_s: Sequence[float], origins: int, candidates: Sequence[Forecaster]) -> dict[str, Any]:
    series = regular(load.times_s, load.per_s, horizon_s=horizons_s[-1], most=_MOST_POINTS)
    steps = _steps(series, horizons_s, load.name)
    tallies: dict[int, _Tally] = {each: _Tally() for each in steps}
    seconds: list[float] = []
    for origin in _origins(series, steps[-1], origins):
        history = series.until(origin).newest()
        began_s = time.perf_counter()
        predictions = forecasts(
            history, [each * series.step_s for each in steps], quantiles=_QUANTILES, candidates=candidates
        )
        seconds.append(time.perf_counter() - began_s)
        alone = {each.name: _alone(each, history, steps[-1]) for each in candidates}
        for one in predictions:
            _judge(tallies[len(one.values)], one, alone, series.values[origin:], season_scale(history))
    return {
        "points": series.known_count,
        "step_s": series.step_s,
        "span_s": series.step_s * len(series.values),
        "notes": [*load.notes, *series.repairs],
        "forecast_s": median(seconds),
        "horizons": {format_duration(each * series.step_s): _horizon_json(tally) for each, tally in tallies.items()},
    }


def _alone(candidate: Forecaster, history: Series, steps: int) -> Array:
    """The forecast of one candidate; NaN if it raises an error, since a plug-in must not stop the others."""
    try:
        return np.asarray(bridge_gaps(roll(candidate, history, [len(history.values)], steps).reshape(1, steps))[0])
    except Exception:
        return np.full(steps, np.nan)


def _steps(series: Series, horizons_s: Sequence[float], name: str) -> list[int]:
    """The horizons in steps, without those that are too long for the trace."""
    steps = sorted({max(1, round(horizon_s / series.step_s)) for horizon_s in horizons_s})
    fitting = [each for each in steps if each <= _LONGEST * len(series.values)]
    if not fitting:
        raise ConfigError(
            f"is too short to forecast {format_duration(steps[0] * series.step_s)} ahead and compare",
            where=name,
            fix="name a shorter horizon or a longer trace",
        )
    return fitting


def _origins(series: Series, steps: int, most: int) -> list[int]:
    """At most this many origins, evenly spread over the trace after its first part, which is only for learning."""
    count = len(series.values)
    return [int(each) for each in np.unique(np.linspace(_LEARNED * count, count - steps, most).astype(np.int64))]


def _judge(tally: _Tally, forecast: Forecast, alone: dict[str, Array], came: Array, scale: float) -> None:
    steps = len(forecast.values)
    measured_steps = np.isfinite(came[:steps])
    if not measured_steps.any() or not scale > 0:
        return
    actual = came[:steps][measured_steps]
    for name, line in {CHAMPION: forecast.column(0.5), **{name: line[:steps] for name, line in alone.items()}}.items():
        tally.mase.setdefault(name, []).append(float(np.mean(np.abs(line[measured_steps] - actual))) / scale)
    low, high = forecast.values[measured_steps, 0], forecast.values[measured_steps, -1]
    if np.isfinite(low).all():
        tally.inside.append(float(np.mean((actual >= low) & (actual <= high))))
    tally.champions.append(forecast.champion)
    tally.usable += forecast.usable


def _horizon_json(tally: _Tally) -> dict[str, Any]:
    return {
        "origins": len(tally.champions),
        "mase": {name: _mean(errors) for name, errors in tally.mase.items()},
        "coverage": _mean(tally.inside),
        "champions": dict(Counter(tally.champions).most_common()),
        "usable": tally.usable,
    }


def _summary(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means over traces and horizons. A candidate that failed somewhere is compared only where it succeeded."""
    names = dict.fromkeys(name for cell in cells for name in cell["mase"])
    both = {
        name: [
            cell["mase"] for cell in cells if _is_finite(cell["mase"].get(name)) and _is_finite(cell["mase"][CHAMPION])
        ]
        for name in names
    }
    return {
        "mean_mase": {name: _mean([mase[name] for mase in cells_of_both]) for name, cells_of_both in both.items()},
        "champion_over": {
            name: _mean([mase[CHAMPION] for mase in cells_of_both]) / _mean([mase[name] for mase in cells_of_both])
            for name, cells_of_both in both.items()
            if cells_of_both and name != CHAMPION
        },
        "mean_coverage": _mean([cell["coverage"] for cell in cells if _is_finite(cell["coverage"])]),
    }


def _worst(traces: dict[str, Any]) -> dict[str, Any]:
    """The cases in which the champion did worst against each candidate, and in which its interval was worst."""
    cells = [
        (f"{name}, {horizon}", cell)
        for name, trace in traces.items()
        for horizon, cell in trace["horizons"].items()
        if _is_finite(cell["mase"].get(CHAMPION))
    ]
    worst: dict[str, Any] = {}
    for name in dict.fromkeys(name for _, cell in cells for name in cell["mase"] if name != CHAMPION):
        ratios = [
            (cell["mase"][CHAMPION] / cell["mase"][name], at)
            for at, cell in cells
            if _is_finite(cell["mase"].get(name)) and cell["mase"][name] > 0
        ]
        if ratios:
            worst[f"champion ÷ {name}"] = dict(zip(("ratio", "at"), max(ratios), strict=True))
    coverages = [
        (abs(cell["coverage"] - NOMINAL), cell["coverage"], at) for at, cell in cells if _is_finite(cell["coverage"])
    ]
    if coverages:
        worst["coverage"] = dict(zip(("coverage", "at"), max(coverages)[1:], strict=True))
    return worst


def _is_finite(value: float | None) -> bool:
    return value is not None and np.isfinite(value)


def _mean(values: Sequence[float]) -> float:
    """NaN if one of them is: the mean of a candidate that failed at an origin cannot be compared."""
    return float(np.mean(values)) if len(values) else float("nan")
