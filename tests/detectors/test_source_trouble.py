"""Each kind of trouble at a source, and what is none."""

from __future__ import annotations

import pytest

from homeostat.core.configuration import Capabilities, Configuration
from homeostat.core.evidence import SourceTrouble
from homeostat.core.source_causes import (
    RETENTION_NEAR,
    ROWS_EXPIRED,
    SOURCE_GONE,
    SOURCE_LEADERLESS,
    SOURCE_UNREACHABLE,
)
from homeostat.core.source_sample import SourcePartition, SourceSample
from homeostat.core.topology import Topology
from homeostat.core.view import View
from homeostat.detectors.source_trouble import SourceTroubleDetector
from homeostat.testing import check_detector

HEALTHY = SourcePartition("orders-0", first=0.0, read=90.0, end=100.0, lag_s=2.0)


def sample(*partitions: SourcePartition, **others: object) -> SourceSample:
    return SourceSample("orders", "orders at b:1", 100.0, partitions or (HEALTHY,), **others)  # type: ignore[arg-type]


def details_by_cause(*samples: SourceSample, now_s: float = 101.0) -> dict[str, str]:
    view = View(now_s, Topology(()), Configuration(), Capabilities(), sources=samples)
    evidence = [symptom.evidence for symptom in SourceTroubleDetector().detect(view)]
    return {each.cause: each.detail for each in evidence if isinstance(each, SourceTrouble)}


def test_a_healthy_source_is_left_alone() -> None:
    assert details_by_cause(sample(keep_s=3600.0)) == {}
    check_detector(SourceTroubleDetector())


@pytest.mark.parametrize(
    ("troubled", "cause", "words"),
    [
        (sample(silent_s=7.0, error="refused"), SOURCE_UNREACHABLE, "no answer for 7 s (refused)"),
        (sample(missing_topics=("orders",)), SOURCE_GONE, "orders does not exist"),
        (
            sample(HEALTHY, SourcePartition("orders-1", has_leader=False)),
            SOURCE_LEADERLESS,
            "1 partitions (orders-1)",
        ),
        (sample(SourcePartition("orders-2", 50.0, 20.0, 60.0)), ROWS_EXPIRED, "30 rows, 30 of them in orders-2"),
        (
            sample(SourcePartition("orders-2", 50.0, 20.0, 60.0), rows_per_offset=0.5),
            ROWS_EXPIRED,
            "about 15 rows",
        ),
        (sample(SourcePartition("orders-0", lag_s=2000.0), keep_s=3600.0), RETENTION_NEAR, "has waited for"),
        (sample(overtaken_s=120.0), RETENTION_NEAR, "unread rows will be deleted in"),
    ],
)
def test_trouble_is_named_with_the_place_and_the_figures(troubled: SourceSample, cause: str, words: str) -> None:
    details = details_by_cause(troubled)
    assert list(details) == [cause]
    assert details[cause].startswith("orders at b:1: ")
    assert words in details[cause]


def test_a_short_silence_is_a_busy_broker_and_an_old_sample_says_nothing() -> None:
    assert details_by_cause(sample(silent_s=2.0)) == {}
    assert details_by_cause(sample(silent_s=70.0), now_s=500.0) == {}
