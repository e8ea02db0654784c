"""The figures by which a run of a duel is judged: violations, lag, cost, actions and pauses, from what really
happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from homeostat.core.observation import Array
from homeostat.lab.bench.intervals import median_interval
from homeostat.sim.simulation import RunResult
from homeostat.sim.truth import TruthSample

FIGURES = ("violation_s", "p95_lag_s", "p99_lag_s", "cost_over_oracle", "actions", "needless", "worst_pause_s")
# If fewer rows than this share of the arrivals are processed, the application counts as stopped.
_STANDS_STILL = 1e-3


def figures(result: RunResult, most: int) -> dict[str, Any]:
    totals = result.as_json()
    lags_s = lag_s(result.truth)
    return {
        "violation_s": totals["slo_violation_s"],
        "p95_lag_s": round(float(np.quantile(lags_s, 0.95)), 3),
        "p99_lag_s": round(float(np.quantile(lags_s, 0.99)), 3),
        "instance_hours": round(totals["instance_seconds"] / 3600.0, 3),
        "oracle_instance_hours": round(totals["oracle_instance_seconds"] / 3600.0, 3),
        "cost_over_oracle": round(totals["instance_seconds"] / totals["oracle_instance_seconds"], 4),
        "cost_over_largest": round(totals["instance_seconds"] / (most * result.duration_s), 4),
        "actions": totals["steps"],
        "needless": totals["needless_actions"],
        "worst_pause_s": round(worst_pause_s(result.truth), 3),
        "duration_s": result.duration_s,
    }


def lag_s(truth: Sequence[TruthSample]) -> Array:
    """How long rows took from their arrival to the end of the tick or batch that processed them, second by second.

    Rows are processed in the order of their arrival. Rows that were never processed took at least until the end.
    """
    ends_s = np.array([sample.at_s for sample in truth])
    spans_s = np.array([sample.span_s for sample in truth])
    arrived = np.cumsum(np.array([sample.arrival_per_s for sample in truth]) * spans_s)
    done = np.maximum.accumulate(arrived - np.array([sample.pending_rows for sample in truth]))
    moments_s = np.arange(0.5, ends_s[-1])
    known_s, known_rows = np.concatenate([[ends_s[0] - spans_s[0]], ends_s]), np.concatenate([[0.0], arrived])
    rows = np.interp(moments_s, known_s, known_rows)
    ended = np.searchsorted(done, rows - 1e-6 * max(float(arrived[-1]), 1.0))
    finished_s = np.where(ended < len(ends_s), ends_s[np.minimum(ended, len(ends_s) - 1)], ends_s[-1])
    return np.asarray(np.maximum(finished_s - moments_s, 0.0))


def worst_pause_s(truth: Sequence[TruthSample]) -> float:
    """The longest time in which nothing was processed although rows arrived; at least the longest tick or batch."""
    worst_s, pause_s = 0.0, 0.0
    for sample in truth:
        stands_still = sample.taken_per_s <= _STANDS_STILL * sample.arrival_per_s
        pause_s = pause_s + sample.span_s if stands_still else 0.0
        worst_s = max(worst_s, pause_s, sample.span_s)
    return worst_s


def over_seeds(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The median of each figure over the seeds, with its interval."""
    summary: dict[str, Any] = {}
    for name in (*FIGURES, "cost_over_largest"):
        interval = median_interval([float(run[name]) for run in runs])
        summary[name] = {"median": interval.median, "low": interval.low, "high": interval.high}
    return summary


def dominates(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    """Whether one had fewer violations at no higher cost, or the same at a lower cost, in the median of equal seeds."""
    violations = _median_difference(one, other, "violation_s")
    cost = _median_difference(one, other, "cost_over_oracle")
    return violations <= 0 and cost <= 0 and (violations < 0 or cost < 0)


def _median_difference(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(np.median([a[name] - b[name] for a, b in zip(one, other, strict=True)]))
