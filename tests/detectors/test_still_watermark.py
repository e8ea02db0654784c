"""A watermark that does not move."""

from __future__ import annotations

import math
from dataclasses import replace

from homeostat.core.observation import Observation
from homeostat.core.source_sample import SourcePartition, SourceSample
from homeostat.detectors.still_watermark import StillWatermark, StillWatermarkDetector
from homeostat.testing import check_detector, view_of
from support.timed_batches import slow_sink

BEGAN_S = 1_700_000_000.0


def with_watermark(step_s: float, count: int = 12) -> list[Observation]:
    """The event time goes on with the clock, and the watermark by `step_s` in each batch."""
    return [
        replace(
            each,
            flows=tuple(
                replace(flow, watermark_s=BEGAN_S + step_s * number, event_time_s=BEGAN_S + 20.0 * number + 60.0)
                for flow in each.flows
            ),
        )
        for number, each in enumerate(slow_sink(0.1, count))
    ]


def test_a_watermark_that_stands_while_event_time_goes_on_is_reported() -> None:
    (symptom,) = StillWatermarkDetector().detect(view_of(with_watermark(0.0)))
    assert symptom.evidence == StillWatermark(220.0, 12.0, 280.0)
    assert symptom.evidence.summary() == "it has not moved for 3 min 40 s, 4 min 40 s behind the latest event"


def test_rows_that_are_written_long_after_their_event_time_are_said_to_be() -> None:
    """The newest row is an hour newer than the latest event, and five minutes of rows are unread."""
    newest_s = BEGAN_S + 20.0 * 11 + 60.0 + 3_600.0
    source = SourceSample("q", "orders", 0.0, (SourcePartition("orders-0", lag_s=300.0),), newest_s=newest_s)
    (symptom,) = StillWatermarkDetector().detect(replace(view_of(with_watermark(0.0)), sources=(source,)))
    assert isinstance(symptom.evidence, StillWatermark)
    assert symptom.evidence.delayed_s == 3_300.0
    assert symptom.evidence.summary().endswith(
        "behind the latest event; rows are written 55 min 00 s after their event time"
    )
    punctual = replace(source, newest_s=newest_s - 3_300.0)
    (symptom,) = StillWatermarkDetector().detect(replace(view_of(with_watermark(0.0)), sources=(punctual,)))
    assert symptom.evidence.summary().endswith("behind the latest event")


def test_a_watermark_that_is_not_reported_has_not_moved() -> None:
    observed = with_watermark(0.0)
    for missing in (9, 11):
        flows = tuple(replace(flow, watermark_s=math.nan) for flow in observed[missing].flows)
        observed[missing] = replace(observed[missing], flows=flows)
    (symptom,) = StillWatermarkDetector().detect(view_of(observed))
    assert isinstance(symptom.evidence, StillWatermark)
    assert symptom.evidence.batches == 10.0


def test_one_that_moves_is_fine_and_so_is_a_query_without_one() -> None:
    assert list(StillWatermarkDetector().detect(view_of(with_watermark(20.0)))) == []
    assert list(StillWatermarkDetector().detect(view_of(slow_sink(0.1, 12)))) == []


def test_it_may_rest_for_some_batches() -> None:
    assert list(StillWatermarkDetector().detect(view_of(with_watermark(0.0, count=4)))) == []


def test_it_keeps_its_contract() -> None:
    check_detector(StillWatermarkDetector())
