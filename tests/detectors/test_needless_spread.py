"""Rows that are still spread although no key is hot any more."""

from __future__ import annotations

import pytest

from homeostat.core.configuration import PARALLELISM, SPREAD, Knob
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import EVEN_KEYS
from homeostat.core.topology import Component, Topology
from homeostat.detectors.needless_spread import EvenKeysDetector, EvenKeysEvidence, imbalance_of
from homeostat.testing import check_detector, instances, observations, view_of

DEALING = Knob(SPREAD, "lines")
SHAPE = Topology((Component("lines", "source", Knob(PARALLELISM, "lines"), spread=DEALING),))


def symptoms(rows: list[float], count: int = 12, spread: int = 2) -> list[Symptom]:
    observed = observations(count, {"lines": instances(rows, 1.0)}, arrival_per_s=10.0)
    return list(EvenKeysDetector().detect(view_of(observed, topology=SHAPE, values={DEALING: spread})))


def test_a_source_whose_partitions_are_even_again_is_found() -> None:
    (symptom,) = symptoms([110.0, 100.0, 90.0])

    assert (symptom.kind, symptom.component) == (EVEN_KEYS, "lines")
    assert isinstance(symptom.evidence, EvenKeysEvidence)
    assert symptom.evidence.largest_over_mean_unspread == pytest.approx(1.1)


def test_other_sources_keep_their_spread() -> None:
    assert symptoms([150.0, 100.0, 50.0]) == [], "still uneven"
    assert symptoms([100.0, 100.0, 100.0], count=11) == [], "not for long enough"
    assert symptoms([100.0, 100.0, 100.0], spread=1) == [], "not spread at all"


def test_the_imbalance_grows_with_the_partitions() -> None:
    assert [imbalance_of(0.1, partitions) for partitions in (1, 2, 11)] == pytest.approx([1.0, 1.1, 2.0])


def test_it_keeps_its_contract() -> None:
    check_detector(EvenKeysDetector())
