"""Partitions that stay uneven."""

from __future__ import annotations

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB, STATE_PARTITIONS, Knob
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import UNEVEN
from homeostat.core.topology import Component, Topology
from homeostat.detectors.uneven_partitions import UnevenEvidence, UnevenPartitionsDetector
from homeostat.testing import check_detector, instances, observations, view_of

SHAPE = Topology(
    (
        Component("scan", "source", EXECUTORS_KNOB),
        Component(
            "count", "operator", EXECUTORS_KNOB, ("scan",), keyed=True, partitions=Knob(STATE_PARTITIONS, "main")
        ),
    )
)


def symptoms(*batches: list[float]) -> list[Symptom]:
    observed = observations(
        len(batches),
        lambda n: {"scan": instances(400.0, 1.0, finish_s=1.0), "count": instances(batches[n], 1.0, finish_s=2.0)},
        executors=2, arrival_per_s=40.0, seconds=3.0, trigger_s=10.0,
    )  # fmt: skip
    return list(UnevenPartitionsDetector().detect(view_of(observed, topology=SHAPE)))


def test_a_partition_with_most_of_the_rows_in_every_batch_is_found_though_half_are_empty() -> None:
    (symptom,) = symptoms(*[[300.0, 100.0, 0.0, 0.0]] * 3)

    assert (symptom.kind, symptom.component, symptom.instances) == (UNEVEN, "count", (0,))
    assert symptom.evidence == UnevenEvidence(3.0, 4.0, 2.0)
    assert symptom.severity == pytest.approx(2.0 / 3.0)


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([[120.0, 100.0, 90.0, 90.0]] * 3, id="almost even"),
        pytest.param([[300.0, 0.0, 50.0, 50.0], [0.0, 300.0, 50.0, 50.0], [50.0, 50.0, 300.0, 0.0]], id="by turns"),
        pytest.param([[6.0, 1.0, 1.0, 0.0]] * 3, id="so few rows that chance decides"),
        pytest.param([[300.0, 100.0, 0.0, 0.0]] * 2, id="too few batches"),
    ],
)
def test_other_partitions_are_not_uneven(batches: list[list[float]]) -> None:
    assert symptoms(*batches) == []


def test_it_keeps_its_contract() -> None:
    check_detector(UnevenPartitionsDetector())
