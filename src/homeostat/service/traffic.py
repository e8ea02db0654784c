"""What arrived at a run's sources, as the log has it, and a forecast of it for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.service.timeline import known
from homeostat.store.protocol import BATCH, Store

if TYPE_CHECKING:
    from homeostat.models.forecast import Forecast

MOST_BATCHES = 200_000


def traffic(store: Store, run: str, most: int = MOST_BATCHES) -> tuple[Array, Array]:
    """The middle of each batch, and how many rows a second arrived in it; the newest batches if there are more."""
    batches = store.records(run, kinds=[BATCH], limit=most, newest_first=True)
    middle_s = [batch.at_s - known(batch.body, "span_s") / 2 for batch in batches]
    return np.array(middle_s), np.array([known(batch.body, "arrival_per_s") for batch in batches])


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
