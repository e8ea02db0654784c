"""Evidence: typed figures that decisions read, and sentences that people read."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from homeostat.core.evidence import (
    FIGURES_IN_A_SENTENCE,
    Evidence,
    LoadRise,
    Measured,
    MissingMetric,
    Silence,
    StuckBatch,
)


@dataclass(frozen=True, slots=True)
class Whole(Evidence):
    rows: float
    wait_s: float | None = None
    part: Evidence = Measured()


def test_figures_leave_out_what_was_not_measured_and_include_the_parts() -> None:
    assert Whole(3.0).figures() == {"rows": 3.0}
    assert Whole(3.0, 2.0, Measured({"key": "a"})).figures() == {"rows": 3.0, "wait_s": 2.0, "key": "a"}


def test_a_part_is_found_by_its_type() -> None:
    gap = MissingMetric("idle", "rows")
    whole = Whole(1.0, part=gap)

    assert whole.find(MissingMetric) is gap
    assert whole.find(Whole) is whole
    assert whole.find(Silence) is None


def test_a_summary_has_the_first_figures_only() -> None:
    many = Measured({f"figure_{n}": float(n) for n in range(9)})

    assert many.summary() == ", ".join(f"figure {n} {n}" for n in range(FIGURES_IN_A_SENTENCE))


@pytest.mark.parametrize(
    ("evidence", "summary"),
    [
        (MissingMetric("idle", "rows"), "the detector idle needs rows, which is missing"),
        (Silence(125.0), "no measurement arrived for 2 min 05 s"),
        (StuckBatch(7, 90.0, 60.0, 3, 8), "batch 7 has been running for 1 min 30 s, 3 of 8 tasks done"),
        (StuckBatch(7, 90.0, 60.0), "batch 7 has been running for 1 min 30 s"),
        (LoadRise(10.0, 50.0, 60.0, 20.0, 2.5), "50 rows/s are forecast in 1 min 00 s, it can process 20"),
    ],
)
def test_each_kind_has_a_sentence_of_its_own(evidence: Evidence, summary: str) -> None:
    assert evidence.summary() == summary
