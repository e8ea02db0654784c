"""What arrived at a run's sources, as the log has it, and a forecast of it for other programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.core.records import BATCH
from homeostat.store.protocol import Store
from homeostat.views.timeline import known

if TYPE_CHECKING:
    from homeostat.models.forecast import Forecast

MOST_BATCHES = 200_000
_MOST_SOURCES = 64


class Arrived(NamedTuple):
    """The middle of each batch, and how many rows a second arrived in it; `sources` has the rates of each, where the
    newest batch has several."""

    times_s: Array
    per_s: Array
    sources: Mapping[str, Array]


def arrived(store: Store, run: str, most: int = MOST_BATCHES) -> Arrived:
    """Of the newest batches, if there are more."""
    batches = store.records(run, kinds=[BATCH], limit=most, newest_first=True)
    middle_s = [batch.at_s - known(batch.body, "span_s") / 2 for batch in batches]
    apart = [of_sources(batch.body) for batch in batches]
    names = next((list(each) for each in apart if each), [])
    return Arrived(
        np.array(middle_s),
        np.array([known(batch.body, "arrival_per_s") for batch in batches]),
        {name: np.array([each.get(name, NAN) for each in apart]) for name in names},
    )


def traffic(store: Store, run: str, most: int = MOST_BATCHES) -> tuple[Array, Array]:
    """All sources together."""
    return arrived(store, run, most)[:2]


def of_sources(body: Mapping[str, Any]) -> dict[str, float]:
    """What arrived at each source, where the record of a batch tells of several."""
    told = body.get("arrivals_per_s")
    return {str(name): known(told, name) for name in list(told)[:_MOST_SOURCES]} if isinstance(told, Mapping) else {}


def forecast_apart(
    times_s: Array, sources: Mapping[str, Array], until_s: float, horizon_s: float, **options: Any
) -> dict[str, Forecast]:
    """Each source by its own champion, from what came before `until_s`."""
    from homeostat.models.forecast import forecast, regular

    before = times_s < until_s
    return {
        name: forecast(regular(times_s[before], per_s[before], horizon_s=horizon_s), horizon_s, **options)
        for name, per_s in sources.items()
    }


def apart_json(made: Mapping[str, Forecast]) -> list[dict[str, Any]]:
    return [
        {"name": name, "usable": one.usable, "reason": one.reason, "champion": one.champion, "mase": one.mase}
        for name, one in made.items()
    ]


def as_json(made: Forecast, came: Sequence[float] = ()) -> dict[str, Any]:
    """`came` is what really arrived, as far as it is known."""
    actual = list(came) + [NAN] * (len(made.values) - len(came))
    return {
        "made_at_s": made.made_at_s,
        "step_s": made.step_s,
        "horizon_s": made.horizon_s,
        "usable": made.usable,
        "reason": made.reason,
        "champion": made.champion,
        "mase": made.mase,
        "coverage": made.coverage,
        "nominal_coverage": made.nominal,
        "origins": made.origins,
        "history_s": made.history_s,
        "season_s": made.season_s,
        "candidates": [{"name": s.name, "mase": s.mase, "error_per_s": s.error_per_s} for s in made.scores],
        "repairs": list(made.repairs),
        "forecast": [
            {"ahead_s": (number + 1) * made.step_s, "low": line[0], "expected": expected, "high": line[-1], "came": now}
            for number, (line, expected, now) in enumerate(
                zip(made.values.tolist(), made.column(0.5).tolist(), actual, strict=True)
            )
        ],
    }
