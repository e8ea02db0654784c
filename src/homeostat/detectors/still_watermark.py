"""Detects a watermark that does not move although rows with event times arrive."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from homeostat.core.evidence import Evidence
from homeostat.core.findings import Symptom
from homeostat.core.observation import Observation
from homeostat.core.symptoms import STILL_WATERMARK
from homeostat.core.view import View
from homeostat.core.wording import whole_span

# Severity is one half when the watermark has stood for this many times as long as is tolerated. A choice.
_HALF_SEVERITY = 2.0
# Rows that are written this long after their event time are said to be late: it explains a watermark that stays behind,
# while a shorter delay is that of any writer. A choice.
_LATE_S = 60.0


@dataclass(frozen=True, slots=True)
class StillWatermark(Evidence):
    """The watermark has not moved for `still_s`, and is `behind_s` behind the latest event time. Rows are written
    `delayed_s` after their event times, by the timestamps of the broker. None if that is unknown."""

    headline: ClassVar[str] = "the watermark of {where} does not move"
    still_s: float
    batches: float
    behind_s: float | None = None
    delayed_s: float | None = None

    def summary(self) -> str:
        delayed_s = self.delayed_s or 0.0
        late = f"; rows are written {whole_span(delayed_s)} after their event time" if delayed_s > _LATE_S else ""
        behind = f", {whole_span(self.behind_s)} behind the latest event" if self.behind_s is not None else ""
        return f"it has not moved for {whole_span(self.still_s)}{behind}{late}"


@dataclass(frozen=True, slots=True)
class StillWatermarkDetector:
    """Reports a watermark that stays the same while batches with rows go on.

    Spark moves it between batches, to the latest event time of the batch before less the delay that the query allows.
    """

    # Batches with rows without a move. A watermark may rest for some, if late rows come in between. A choice.
    least_batches: int = 5
    # And at least this long, because many short batches may have the same second of event time. A choice.
    least_s: float = 10.0
    name: str = STILL_WATERMARK

    def detect(self, view: View) -> Iterator[Symptom]:
        each_s = [o.once("watermark of rows", partial(_watermark_s, o)) for o in view.window.observations]
        with_rows = [o for o, mark_s in zip(view.window.observations, each_s, strict=True) if math.isfinite(mark_s)]
        marks = np.array([mark_s for mark_s in each_s if math.isfinite(mark_s)])
        if len(marks) < self.least_batches or not marks[-1] > 0:
            return
        moved = np.flatnonzero(marks != marks[-1])
        still = with_rows[int(moved[-1]) + 1 :] if len(moved) else with_rows
        still_s = still[-1].at_s - still[0].at_s
        if len(still) < self.least_batches or still_s < self.least_s:
            return
        event_s = max((flow.event_time_s for flow in with_rows[-1].flows), default=math.nan)
        behind_s = event_s - float(marks[-1]) if math.isfinite(event_s) else None
        delays_s = [sample.event_delay_s(event_s) for sample in view.sources]
        delayed_s = max((each for each in delays_s if math.isfinite(each)), default=None)
        severity = still_s / (still_s + _HALF_SEVERITY * self.least_s)
        yield Symptom(STILL_WATERMARK, "", severity, StillWatermark(still_s, float(len(still)), behind_s, delayed_s))


def _watermark_s(observation: Observation) -> float:
    """NaN if the batch had no rows."""
    if not any(flow.rows > 0 for flow in observation.flows):
        return math.nan
    marks = [flow.watermark_s for flow in observation.flows if math.isfinite(flow.watermark_s)]
    return min(marks, default=math.nan)
