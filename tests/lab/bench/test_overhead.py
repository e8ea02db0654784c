"""`homeostat bench overhead` compares what belongs together."""

from __future__ import annotations

import pytest

from homeostat.lab.bench.overhead import Segment, throughput_json


def segment(managed: bool, rows_per_s: float) -> Segment:
    return Segment(managed, batches=4, rows=10 * rows_per_s, seconds=10.0, cpu_s=1.0)


def test_each_pair_is_compared_whichever_came_first() -> None:
    segments = [segment(True, 95.0), segment(False, 100.0), segment(False, 50.0), segment(True, 49.0)]
    figures = throughput_json(segments)
    assert figures["ratios"] == pytest.approx([0.95, 0.98])
    assert figures["throughput_ratio"] == pytest.approx(0.965)
    assert figures["throughput_ratio_interval"] == pytest.approx([0.95, 0.98])
    assert figures["interval_coverage"] == 0.5
    assert figures["rows_per_s"] == {"with": [95.0, 49.0], "without": [100.0, 50.0]}
