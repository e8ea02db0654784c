"""The paper's table: what each combination of symptoms is read as."""

from __future__ import annotations

import pytest

from homeostat.core.causes import (
    DATA_SKEW,
    INCONCLUSIVE,
    OVER_PROVISIONED,
    SLO_UNMET,
    SLOW_INSTANCE,
    SOURCE_LIMITED,
    UNDER_PROVISIONED,
)
from homeostat.core.configuration import PARALLELISM, Capabilities, Configuration, Knob
from homeostat.core.evidence import MissingMetric
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.symptoms import GROWING_BACKLOG, IDLE, PENDING_SKEW, PRESSURE, RATE_SKEW, SLO_VIOLATION, UNKNOWN
from homeostat.core.topology import Component, Topology
from homeostat.core.view import View
from homeostat.detectors.paper_thresholds import BackPressure, QueueGrowth, ThroughputMissed
from homeostat.diagnosers.paper_table import NextReading, PaperTable


def component(name: str, *inputs: str) -> Component:
    return Component(name, "operator" if inputs else "source", Knob(PARALLELISM, name), inputs)


def diagnose(*symptoms: Symptom) -> list[Diagnosis]:
    """On spout → split → (count → store, audit)."""
    topology = Topology(
        (
            component("spout"),
            component("split", "spout"),
            component("count", "split"),
            component("store", "count"),
            component("audit", "split"),
        )
    )
    return list(PaperTable().diagnose(View(0.0, topology, Configuration(), Capabilities()), symptoms))


def pressure(component: str, share: float = 0.5, *instances: int) -> Symptom:
    return Symptom(PRESSURE, component, share, BackPressure(share, share, 1.0), instances)


def unknown(component: str, detector: str) -> Symptom:
    return Symptom(UNKNOWN, component, evidence=MissingMetric(detector, "rows"))


def causes(*symptoms: Symptom) -> list[tuple[str, str]]:
    return [(d.cause, d.component) for d in diagnose(*symptoms)]


@pytest.mark.parametrize(
    ("skews", "cause"),
    [
        ((), UNDER_PROVISIONED),
        ((PENDING_SKEW,), SLOW_INSTANCE),
        ((PENDING_SKEW, RATE_SKEW), DATA_SKEW),
        ((RATE_SKEW,), INCONCLUSIVE),
    ],
)
def test_pressure_is_read_with_the_skews_at_the_same_component(skews: tuple[str, ...], cause: str) -> None:
    elsewhere = Symptom(PENDING_SKEW, "audit")
    diagnoses = diagnose(pressure("count"), *(Symptom(kind, "count") for kind in skews), elsewhere)
    assert [(d.cause, d.component) for d in diagnoses] == [(cause, "count")]
    assert [s.kind for s in diagnoses[0].symptoms] == [PRESSURE, *skews]


def test_the_combination_the_original_left_out_says_why_nothing_is_done() -> None:
    (diagnosis,) = diagnose(pressure("count"), Symptom(RATE_SKEW, "count"))
    assert (
        diagnosis.evidence.figures()["why"]
        == "the rates differ but the queues do not, and the table has no entry for this"
    )


def test_the_instances_under_pressure_are_the_ones_blamed() -> None:
    (diagnosis,) = diagnose(pressure("count", 0.7, 3), Symptom(PENDING_SKEW, "count", instances=(3, 4)))
    assert diagnosis.instances == (3,)


def test_no_pressure_no_trouble() -> None:
    assert causes(Symptom(PENDING_SKEW, "count"), Symptom(RATE_SKEW, "count")) == []


def test_several_bottlenecks_at_once_the_most_downstream_first() -> None:
    symptoms = (pressure("audit"), pressure("store"), Symptom(PENDING_SKEW, "audit"))
    assert causes(*symptoms) == [(UNDER_PROVISIONED, "store"), (SLOW_INSTANCE, "audit")]


def test_what_is_held_back_is_not_blamed_but_explained() -> None:
    diagnoses = diagnose(pressure("spout", 0.9), pressure("split", 0.9), pressure("store", 0.4))
    assert [(d.cause, d.component) for d in diagnoses] == [(UNDER_PROVISIONED, "store")]
    assert diagnoses[0].evidence.figures()["holds_back"] == "spout, split"
    assert [s.component for s in diagnoses[0].symptoms] == ["store", "spout", "split"]


def test_idle_components_are_over_provisioned_the_most_downstream_first() -> None:
    diagnosed_causes = causes(Symptom(IDLE, "split"), Symptom(IDLE, "store"))
    assert diagnosed_causes == [(OVER_PROVISIONED, "store"), (OVER_PROVISIONED, "split")]


def test_nothing_is_over_provisioned_while_there_is_pressure_anywhere() -> None:
    assert causes(Symptom(IDLE, "store"), pressure("split")) == [(UNDER_PROVISIONED, "split")]


def test_a_queue_that_grows_without_pressure_is_inconclusive() -> None:
    (diagnosis,) = diagnose(Symptom(GROWING_BACKLOG, "count", evidence=QueueGrowth(50.0, 10.0)))
    assert (diagnosis.cause, diagnosis.component) == (INCONCLUSIVE, "count")


@pytest.mark.parametrize("detector", ["pending-skew", "rate-skew"])
def test_pressure_with_an_unknown_skew_is_inconclusive(detector: str) -> None:
    (diagnosis,) = diagnose(pressure("count"), unknown("count", detector), Symptom(PENDING_SKEW, "count"))
    assert (diagnosis.cause, diagnosis.component) == (INCONCLUSIVE, "count")
    assert diagnosis.evidence.figures()["missing"] == "rows"


def test_a_missing_metric_is_never_health() -> None:
    assert causes(unknown("count", "pressure"), unknown("count", "idle")) == [(INCONCLUSIVE, "count")]


def slo(arrival_per_s: float) -> Symptom:
    evidence = ThroughputMissed(100.0, 50.0, arrival_per_s)
    return Symptom(SLO_VIOLATION, "", 0.5, evidence)


def test_healthy_but_below_the_objective_is_up_to_the_sources() -> None:
    assert causes(slo(200.0)) == [(SLO_UNMET, "spout")]


def test_an_objective_above_what_arrives_is_not() -> None:
    assert causes(slo(50.0)) == [(SOURCE_LIMITED, "")]
    assert causes(slo(60.0)) == [(SOURCE_LIMITED, ""), (SLO_UNMET, "spout")]
    assert causes(slo(float("nan"))) == [(INCONCLUSIVE, "")]


def test_pressure_comes_before_the_objective_and_unknown_pressure_stops_it() -> None:
    assert causes(slo(200.0), pressure("count")) == [(UNDER_PROVISIONED, "count")]
    assert causes(slo(200.0), unknown("count", "pressure")) == [(INCONCLUSIVE, "count")]


def test_an_unmet_objective_keeps_what_is_idle() -> None:
    assert causes(slo(200.0), Symptom(IDLE, "store")) == [(SLO_UNMET, "spout")]


def test_the_next_readings_of_skew_are_a_slow_instance_and_then_too_few() -> None:
    topology = Topology((component("spout"), component("count", "spout")))
    view = View(0.0, topology, Configuration(), Capabilities())
    skewed = [pressure("count"), Symptom(PENDING_SKEW, "count"), Symptom(RATE_SKEW, "count")]
    diagnoses = list(NextReading().diagnose(view, skewed))
    assert [(d.cause, d.probability) for d in diagnoses] == [(SLOW_INSTANCE, 0.5), (UNDER_PROVISIONED, 0.25)]
    assert list(NextReading().diagnose(view, [pressure("count")])) == []
    assert list(NextReading().diagnose(view, [*skewed, unknown("count", "rate-skew")])) == []
