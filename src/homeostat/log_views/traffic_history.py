"""The rates at which rows arrived at a run's sources, read from the log, and a forecast of them as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.core.records import BatchContent, with_content
from homeostat.store.protocol import Store
from homeostat.store.rollups import history

if TYPE_CHECKING:
    from homeostat.models.forecast import Forecast

MOST_BATCHES = 200_000
_MOST_SOURCES = 64


class ArrivalHistory(NamedTuple):
    """The middle of each batch and the rows per second that arrived in it. `sources` holds the rates of each source,
    where the newest batch has several."""

    times_s: Array
    per_s: Array
    sources: Mapping[str, Array]


def arrival_history(store: Store, run: str, most: int = MOST_BATCHES) -> ArrivalHistory:
    """Of the newest batches, if there are more, and of the summaries of those that are no longer kept."""
    batches = list(with_content(reversed(history(store, run, most=most, finest=True)), BatchContent))
    by_source = [arrivals_by_source(batch) for _, batch in batches]
    names = next((list(rates) for rates in by_source if rates), [])
    return ArrivalHistory(
        np.array([record.at_s - batch.span_s / 2 for record, batch in batches]),
        np.array([batch.arrival_per_s for _, batch in batches]),
        {name: np.array([rates.get(name, NAN) for rates in by_source]) for name in names},
    )


def traffic(store: Store, run: str, most: int = MOST_BATCHES) -> tuple[Array, Array]:
    """All sources together."""
    return arrival_history(store, run, most)[:2]


def arrivals_by_source(batch: BatchContent) -> dict[str, float]:
    """The rate at each source; empty for a batch of a single source."""
    return dict(list(batch.arrivals_per_s.items())[:_MOST_SOURCES])


def forecast_apart(
    times_s: Array, sources: Mapping[str, Array], until_s: float, horizon_s: float, **options: Any
) -> dict[str, Forecast]:
    """A forecast of each source by its own best model, from the history before `until_s`."""
    from homeostat.models.forecast import forecast, regular

    before = times_s < until_s
    return {
        name: forecast(regular(times_s[before], per_s[before], horizon_s=horizon_s), horizon_s, **options)
        for name, per_s in sources.items()
    }


def apart_json(forecasts: Mapping[str, Forecast]) -> list[dict[str, Any]]:
    return [
        {"name": name, "usable": one.usable, "reason": one.reason, "champion": one.champion, "mase": one.mase}
        for name, one in forecasts.items()
    ]


def as_json(forecast: Forecast, arrivals: Sequence[float] = ()) -> dict[str, Any]:
    """`arrivals` holds the rates that really came, as far as they are known."""
    actual = list(arrivals) + [NAN] * (len(forecast.values) - len(arrivals))
    return {
        "made_at_s": forecast.made_at_s,
        "step_s": forecast.step_s,
        "horizon_s": forecast.horizon_s,
        "usable": forecast.usable,
        "reason": forecast.reason,
        "champion": forecast.champion,
        "mase": forecast.mase,
        "coverage": forecast.coverage,
        "nominal_coverage": forecast.nominal,
        "origins": forecast.origins,
        "history_s": forecast.history_s,
        "season_s": forecast.season_s,
        "candidates": [{"name": s.name, "mase": s.mase, "error_per_s": s.error_per_s} for s in forecast.scores],
        "repairs": list(forecast.repairs),
        "forecast": [
            {
                "ahead_s": (number + 1) * forecast.step_s,
                "low": line[0],
                "expected": expected,
                "high": line[-1],
                "came": came,
            }
            for number, (line, expected, came) in enumerate(
                zip(forecast.values.tolist(), forecast.column(0.5).tolist(), actual, strict=True)
            )
        ],
    }
