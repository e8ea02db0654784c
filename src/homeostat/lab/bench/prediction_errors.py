"""How far the models' predictions are from measurements, in the simulator and on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from homeostat.core.observation import Array
from homeostat.models.application_model import Predicted

# The models are accepted up to this median error, over at least this many configurations that they were not fitted to.
MOST_ERROR = 0.10
LEAST_TRIED = 12
# The share of batches within the predicted 10th to 90th percentile, which is to be 0.8.
LEAST_COVERAGE, MOST_COVERAGE = 0.75, 0.90
SEED = 1


@dataclass(frozen=True, slots=True)
class Real:
    """The measurements of one configuration."""

    seconds: Array
    throughput_per_s: float


def comparison_json(name: str, prediction: Predicted, real: Real, off: float) -> dict[str, Any]:
    """Compares a prediction with a real run.

    `off` is predicted ÷ real in the configuration that the model was fitted to, in the same session. `ratio_error` is
    relative to that, which cancels the speed of the machine.
    """
    batch = prediction.batch_s
    assert batch is not None
    middle = float(np.median(real.seconds))
    return {
        "configuration": name,
        "batches": len(real.seconds),
        "batch_s": dict(zip(("p10", "p50", "p90"), np.percentile(real.seconds, (10, 50, 90)).tolist(), strict=True)),
        "predicted_s": batch.as_json(),
        "batch_error": abs(batch.middle / middle - 1),
        "ratio_error": abs(batch.middle / middle / off - 1),
        "throughput_per_s": real.throughput_per_s,
        "predicted_throughput_per_s": prediction.throughput_per_s,
        "throughput_error": abs(prediction.throughput_per_s / real.throughput_per_s - 1),
        "coverage": float(np.mean((real.seconds >= batch.low) & (real.seconds <= batch.high))),
        "assumed": list(prediction.unknown),
    }


def summary(lines: Sequence[Mapping[str, Any]], saturation_errors: Sequence[float]) -> dict[str, Any]:
    """Medians over all configurations, and whether they are accepted. The largest rates may come from others."""

    def middle(key: str) -> float:
        return float(np.median([line[key] for line in lines]))

    ratio, throughput = middle("ratio_error"), middle("throughput_error")
    saturation = float(np.median(saturation_errors)) if saturation_errors else None
    coverage = float(np.mean([line["coverage"] for line in lines]))
    figures = {
        "median_batch_error": middle("batch_error"),
        "median_ratio_error": ratio,
        "worst_batch_error": max(line["batch_error"] for line in lines),
        "median_throughput_error": throughput,
        "median_saturation_error": saturation,
        "coverage": coverage,
    }
    holds = {
        "configurations": len(lines) >= LEAST_TRIED,
        "batch": ratio <= MOST_ERROR,
        "throughput": throughput <= MOST_ERROR,
        "saturation": saturation is not None and saturation <= MOST_ERROR,
        "coverage": LEAST_COVERAGE <= coverage <= MOST_COVERAGE,
    }
    return judged(figures, holds)


def judged(figures: Mapping[str, Any], holds: Mapping[str, bool]) -> dict[str, Any]:
    """The figures, and whether all conditions hold: these and the ones that they were judged by before."""
    conditions = {**figures.get("holds", {}), **holds}
    return {**figures, "holds": conditions, "accepted": all(conditions.values())}
