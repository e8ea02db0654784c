"""Detects time that batches lose: for each cause, how long they would take without it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from homeostat.core.causes import DATA_SKEW, SLOW_INSTANCE, SOURCE_SKEW, UNDER_PROVISIONED, cause_of
from homeostat.core.evidence import LostTime
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS, NEARLY_LATE, WORTH_NAMING
from homeostat.core.findings import Symptom
from homeostat.core.observation import Array
from homeostat.core.stats import median
from homeostat.core.symptoms import LOST_TIME
from homeostat.core.time_causes import COSTLY_KEYS, SKEWED_JOIN
from homeostat.core.topology import Topology
from homeostat.core.view import View
from homeostat.models.loss_series import LossSeries
from homeostat.models.recoverable import UNEVEN_ROWS
from homeostat.models.time_losses import time_losses

# Without a trigger interval, a loss matters from this share of the batch on. A choice.
_MOST_OF_BATCH = 0.5
# A rise by less than this is noise, whatever the ratio. A choice.
_SMALL_S = 0.1
# Each batch must lose this share of what the typical one must lose. A choice: noise halves some losses.
_ABOUT = 0.5
# Keeps the division finite.
_SMALLEST_S = 1e-9


@dataclass(frozen=True, slots=True)
class LostTimeDetector:
    """Reports each cause that costs the latest batches a share of the time that they may take.

    A smaller loss is no symptom, because removing it would not be noticed. Neither is a usual loss of batches that end
    in time, unless a healthy batch has no such loss.
    """

    least_share: float = WORTH_NAMING
    # The share of the batch itself, without the causes that cost more. A late batch has many more rows than usual, so
    # that a loss that is large for the trigger interval can be a small part of it. A loss that has clearly risen need
    # not be so large. A choice.
    least_of_batch: float = 0.2
    nearly_late: float = NEARLY_LATE
    # How many times the usual loss is a rise. A smaller one would report the noise of healthy batches. A choice.
    risen: float = 2.0
    # How many times the usual loss counts beside a larger one. Late batches have more rows, so that all losses grow a
    # little. A choice.
    above_usual: float = 1.5
    # Batches that must agree. A choice, as for every symptom.
    least: int = LEAST_OBSERVATIONS
    name: str = LOST_TIME
    in_any_configuration: ClassVar[bool] = True

    def detect(self, view: View) -> Iterator[Symptom]:
        series = [each for each in time_losses(view) if each.cause != UNDER_PROVISIONED]
        more_executors = next((s for s in time_losses(view) if s.cause == UNDER_PROVISIONED), None)
        count = len(view.window.telling(self.least))
        rest_s: Array | None = None  # of each batch, without the causes that cost more
        reported_causes: set[tuple[str, str]] = set()
        for each in sorted(series, key=lambda one: -median(one.lost_s[-count:])) if count else ():
            component = each.component if each.component in view.topology else ""
            cause = _cause_at(view.topology, component, each.cause)
            if not self._is_notable(each, cause, rest_s, count):
                continue
            evidence = lost_time(each, more_executors, count, self.least_share)
            left_s = median(_rest_s(each, rest_s)[-count:])
            if rest_s is not None or left_s < evidence.batch_s:
                evidence = replace(evidence, rest_s=left_s)
            rest_s = np.maximum((each.seconds if rest_s is None else rest_s) - each.lost_s, 0.0)
            if (cause, component) in reported_causes or cause == SLOW_INSTANCE:
                continue  # a detector of its own reports slow workers
            reported_causes.add((cause, component))
            severity = min(1.0, evidence.share)
            evidence = replace(evidence, cause=cause)
            yield Symptom(LOST_TIME, component, severity, evidence, each.instances, each.workers)

    def _is_notable(self, series: LossSeries, cause: str, rest_s: Array | None, count: int) -> bool:
        """Whether the typical batch lost much to the cause, and each of the latest ones at least half as much.

        One of them may be an exception: a metric may have been missing.
        """
        last = slice(-self.least - 1 if count == self.least else -count, None)
        lost_s = (series.lost_s if rest_s is None else series.beside_s)[last]
        shares = series.share[last] * lost_s / np.maximum(series.lost_s[last], _SMALLEST_S)
        about_share = shares >= _ABOUT * self.least_share
        if np.count_nonzero(about_share) < count:
            return False
        of_rest = lost_s / np.maximum(_rest_s(series, rest_s)[last], lost_s + _SMALLEST_S)
        has_risen = self._has_risen(series, count)
        least_of_batch = self.least_share if has_risen else self.least_of_batch
        about = about_share & (of_rest >= _ABOUT * least_of_batch)
        if np.count_nonzero(about) < count:
            return False
        if median(shares) < self.least_share or median(of_rest) < least_of_batch:
            return False
        if rest_s is not None and not self._is_more_than_usual(series, count):
            return False
        return cause_of(cause).unusual or self._harms(series, count) or has_risen

    def _is_more_than_usual(self, series: LossSeries, count: int) -> bool:
        """A usual loss is not the reason for late batches if there is a larger loss."""
        lost_s = median(series.lost_s[-count:])
        return not math.isfinite(series.usual_s) or lost_s >= self.above_usual * series.usual_s

    def _harms(self, series: LossSeries, count: int) -> bool:
        """Whether batches nearly fill their trigger interval. Without one, whether the loss is most of the batch."""
        trigger_s, seconds = median(series.trigger_s[-count:]), median(series.seconds[-count:])
        if trigger_s > 0:
            return seconds >= self.nearly_late * trigger_s
        return median(series.lost_s[-count:]) >= _MOST_OF_BATCH * seconds

    def _has_risen(self, series: LossSeries, count: int) -> bool:
        lost_s = median(series.lost_s[-count:])
        return lost_s >= self.risen * series.usual_s and lost_s - series.usual_s >= _SMALL_S


def _rest_s(series: LossSeries, rest_s: Array | None) -> Array:
    """The batch without the causes that cost more. A cause outside of all tasks is compared with a batch that has the
    rows of one trigger interval: rows that wait make only tasks longer."""
    batch_s = series.seconds if rest_s is None else rest_s
    return batch_s if series.of_interval is None else np.asarray(batch_s * series.of_interval)


def _cause_at(topology: Topology, name: str, cause: str) -> str:
    """What uneven or costly rows mean at this component: a join makes many rows of the keys that have many on both
    sides, so that its tasks take long with few rows to read."""
    if name in topology and topology[name].joins and cause in (UNEVEN_ROWS, COSTLY_KEYS):
        return SKEWED_JOIN
    if cause != UNEVEN_ROWS:
        return cause
    return SOURCE_SKEW if name in topology and topology[name].kind == "source" else DATA_SKEW


def lost_time(series: LossSeries, more_executors: LossSeries | None, last: int, least_share: float) -> LostTime:
    """Sum up the latest batches of a series."""
    trigger_s = median(series.trigger_s[-last:])
    wins_s = median(more_executors.lost_s[-last:]) if more_executors is not None else 0.0
    below = np.flatnonzero(series.share[::-1] < least_share)
    return LostTime(
        series.cause,
        lost_s=median(series.lost_s[-last:]),
        batch_s=median(series.seconds[-last:]),
        share=median(series.share[-last:]),
        trigger_s=trigger_s if trigger_s > 0 else None,
        usual_s=series.usual_s if math.isfinite(series.usual_s) else None,
        more_executors_win_s=wins_s,
        batches_in_a_row=float(below[0]) if len(below) else float(len(series.share)),
        guessed=series.guessed,
    )
