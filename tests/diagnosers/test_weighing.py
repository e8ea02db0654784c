"""What the default flavour reads from symptoms: each cause alone, several at once, and what cannot be told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from homeostat.core.causes import (
    DATA_SKEW,
    EXTERNAL,
    INCONCLUSIVE,
    OVER_PROVISIONED,
    SLO_UNMET,
    SLOW_INSTANCE,
    SOURCE_LIMITED,
    UNDER_PROVISIONED,
)
from homeostat.core.evidence import LostTime, Measured, MissingMetric
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.objective import Objective
from homeostat.core.observation import NAN, TaskSample
from homeostat.core.symptoms import (
    GROWING_BACKLOG,
    IDLE,
    LOST_TIME,
    PENDING_SKEW,
    PRESSURE,
    RATE_SKEW,
    SLO_VIOLATION,
    SPEED_SKEW,
    UNKNOWN,
)
from homeostat.core.time_causes import SINK_BOUND
from homeostat.core.view import View
from homeostat.detectors.instance_skew import LostWorkers, RowsOverPeers, SlowWorkers, WaitingOverPeers
from homeostat.detectors.pressure import PressureEvidence
from homeostat.detectors.slo_violation import LAG, LATENCY, THROUGHPUT, ObjectiveMissed
from homeostat.diagnosers.weighing import EvidenceDiagnoser, TooLittleArrives
from homeostat.testing import instances, observations, view_of


def view(
    split: TaskSample | None = None,
    arrival_per_s: float = 100.0,
    *,
    store: TaskSample | None = None,
    throughput_per_s: float | None = None,
) -> View:
    """lines → split (2 × 100/s unless given) → store; 10 s intervals."""
    tasks = {
        "lines": instances(1000.0, 0.5),
        "split": split or instances([500.0] * 2, 5.0),
        "store": store or instances(1000.0, 2.0),
    }
    observed = observations(8, tasks, arrival_per_s=arrival_per_s)
    return view_of(observed, objective=Objective(throughput_per_s=throughput_per_s))


def pressure(component: str = "split", offered_per_s: float | None = None) -> Symptom:
    evidence = PressureEvidence(offered_per_s=offered_per_s)
    return Symptom(PRESSURE, component, 0.4, evidence)


def slow(times: float = 3.0, lasting: int = 3) -> Symptom:
    evidence = SlowWorkers(times, lasting)
    return Symptom(SPEED_SKEW, "split", 1.0 - 1.0 / times, evidence, (1,), ("split-1",))


def skewed(times: float = 3.0) -> Symptom:
    return Symptom(RATE_SKEW, "split", 1.0 - 1.0 / times, RowsOverPeers(times, 1.0), (0,), ("split-0",))


def waiting(instance: int) -> Symptom:
    return Symptom(PENDING_SKEW, "split", 0.9, WaitingOverPeers(10.0, 1.0), (instance,), (f"split-{instance}",))


def unknown(component: str = "split") -> Symptom:
    return Symptom(UNKNOWN, component, evidence=MissingMetric("pressure", "arrival"))


def diagnose(snapshot: View, *symptoms: Symptom) -> list[Diagnosis]:
    return list(EvidenceDiagnoser().diagnose(snapshot, symptoms))


def named(diagnoses: Sequence[Diagnosis]) -> list[tuple[str, str]]:
    return [(d.cause, d.component) for d in diagnoses]


TOO_FEW = Symptom(SLO_VIOLATION, "", 0.8, ObjectiveMissed(THROUGHPUT, 500.0, 100.0))
ONE_SLOW = instances([250.0] * 4, [2.5, 10.0, 2.5, 2.5])
ONE_HOT = instances([1000.0, 250.0, 250.0, 250.0], [10.0, 2.5, 2.5, 2.5])


def test_pressure_on_even_instances_is_too_few_of_them() -> None:
    (diagnosis,) = diagnose(view(arrival_per_s=300.0), pressure(offered_per_s=300.0))

    assert (diagnosis.cause, diagnosis.component) == (UNDER_PROVISIONED, "split")
    assert diagnosis.probability > 0.9
    assert diagnosis.evidence.figures()["capacity_per_s"] == pytest.approx(200.0)
    assert [s.kind for s in diagnosis.symptoms] == [PRESSURE]


def test_a_slow_instance_alone_is_named_with_its_worker() -> None:
    """400/s with all of them as fast as the others: enough for 150."""
    (diagnosis,) = diagnose(view(ONE_SLOW, 150.0), pressure(offered_per_s=150.0), slow(), waiting(1))

    assert (diagnosis.cause, diagnosis.component) == (SLOW_INSTANCE, "split")
    assert (diagnosis.instances, diagnosis.workers) == ((1,), ("split-1",))
    assert diagnosis.probability > 0.9


def test_a_slow_instance_is_named_before_it_causes_pressure() -> None:
    assert named(diagnose(view(ONE_SLOW, 50.0), slow())) == [(SLOW_INSTANCE, "split")]
    assert named(diagnose(view(ONE_SLOW, 50.0), slow(1.6))) == []


def test_a_lost_worker_is_certain() -> None:
    lost = Symptom(SPEED_SKEW, "split", 1.0, LostWorkers(1.0), (1,), ("split-1",))

    (diagnosis,) = diagnose(view(), lost)

    assert (diagnosis.cause, diagnosis.workers) == (SLOW_INSTANCE, ("split-1",))
    assert diagnosis.probability == pytest.approx(0.95)


def test_rows_and_waiting_at_the_same_instance_is_data_skew() -> None:
    (diagnosis,) = diagnose(view(ONE_HOT, 200.0), pressure(offered_per_s=200.0), skewed(4.0), waiting(0))

    assert (diagnosis.cause, diagnosis.component, diagnosis.instances) == (DATA_SKEW, "split", (0,))
    assert diagnosis.probability > 0.9


def test_rows_at_one_instance_and_waiting_at_another_is_less_sure() -> None:
    together, apart = (
        diagnose(view(ONE_HOT, 200.0), pressure(offered_per_s=200.0), skewed(4.0), waiting(instance))[0]
        for instance in (0, 2)
    )

    assert together.cause == apart.cause == DATA_SKEW
    assert apart.probability < together.probability


def test_skew_that_troubles_nobody_is_no_diagnosis() -> None:
    assert diagnose(view(ONE_HOT), skewed(4.0), waiting(0)) == []


def test_slow_and_under_provisioned_are_named_together() -> None:
    """Even with all four at full speed 400/s would not be enough."""
    diagnoses = diagnose(view(ONE_SLOW, 600.0), pressure(offered_per_s=600.0), slow(), waiting(1))

    assert sorted(named(diagnoses)) == [(SLOW_INSTANCE, "split"), (UNDER_PROVISIONED, "split")]


def test_skewed_and_under_provisioned_are_named_together() -> None:
    diagnoses = diagnose(view(ONE_HOT, 600.0), pressure(offered_per_s=600.0), skewed(4.0), waiting(0))

    assert sorted(named(diagnoses)) == [(DATA_SKEW, "split"), (UNDER_PROVISIONED, "split")]


def test_troubles_of_several_components_are_named_the_most_downstream_first() -> None:
    snapshot = view(ONE_SLOW, 150.0, store=instances(1000.0, 10.0))

    diagnoses = diagnose(snapshot, pressure(offered_per_s=150.0), slow(), pressure("store", 150.0))

    assert named(diagnoses) == [(UNDER_PROVISIONED, "store"), (SLOW_INSTANCE, "split")]


def test_a_sink_that_holds_back_without_working_waits_for_something_outside() -> None:
    snapshot = view(store=instances(100.0, 0.1, pressured_s=9.0))

    diagnoses = diagnose(snapshot, pressure("store", 50.0))

    assert named(diagnoses) == [(EXTERNAL, "store")]
    assert diagnoses[0].probability == pytest.approx(0.9)


def test_a_sink_that_works_all_the_time_is_not_waiting_for_anybody() -> None:
    diagnoses = diagnose(
        view(store=instances(1000.0, 10.0, pressured_s=9.0), arrival_per_s=200.0), pressure("store", 200.0)
    )

    assert named(diagnoses) == [(UNDER_PROVISIONED, "store")]


def test_pressure_that_no_cause_explains_is_inconclusive_with_the_causes_weighed() -> None:
    (diagnosis,) = diagnose(view(), pressure(offered_per_s=100.0))

    assert (diagnosis.cause, diagnosis.component) == (INCONCLUSIVE, "split")
    weighed = str(diagnosis.evidence.figures()["causes_weighed"])
    assert all(cause in weighed for cause in (SLOW_INSTANCE, DATA_SKEW, EXTERNAL, UNDER_PROVISIONED))
    assert diagnosis.probability < 0.5


def test_pressure_where_the_load_is_unknown_is_inconclusive() -> None:
    assert named(diagnose(view(instances([NAN] * 2, NAN)), pressure())) == [(INCONCLUSIVE, "split")]
    assert named(diagnose(view(arrival_per_s=NAN), pressure())) == [(INCONCLUSIVE, "split")]


def test_an_idle_component_is_over_provisioned() -> None:
    idle = Symptom(IDLE, "split", 0.8, Measured({"utilisation": 0.2}))

    (diagnosis,) = diagnose(view(arrival_per_s=20.0), idle)

    assert (diagnosis.cause, diagnosis.component, diagnosis.symptoms) == (OVER_PROVISIONED, "split", (idle,))


@pytest.mark.parametrize(
    "trouble", [pressure("store", 900.0), Symptom(GROWING_BACKLOG), Symptom(SLO_VIOLATION), slow(5.0)]
)
def test_nothing_is_over_provisioned_while_there_is_trouble(trouble: Symptom) -> None:
    diagnoses = diagnose(view(), Symptom(IDLE, "split", 0.8), trouble)

    assert diagnoses
    assert OVER_PROVISIONED not in [d.cause for d in diagnoses]


def test_an_objective_beyond_what_arrives_is_limited_by_the_source() -> None:
    (diagnosis,) = diagnose(view(arrival_per_s=100.0, throughput_per_s=500.0), TOO_FEW)

    assert (diagnosis.cause, diagnosis.component) == (SOURCE_LIMITED, "")
    assert diagnosis.evidence == TooLittleArrives(100.0, 500.0)


def test_too_little_that_arrives_excuses_the_throughput_but_not_the_latency() -> None:
    snapshot = view(arrival_per_s=100.0, throughput_per_s=500.0)
    late = Symptom(SLO_VIOLATION, "", 0.5, ObjectiveMissed(LATENCY, 10.0, 20.0))

    starved, slow = diagnose(snapshot, TOO_FEW, late)

    assert (starved.cause, starved.symptoms) == (SOURCE_LIMITED, (TOO_FEW,))
    assert (slow.cause, slow.symptoms, slow.evidence.figures()["measured"]) == (SLO_UNMET, (late,), 20.0)


def test_all_objectives_that_are_missed_are_reported_the_worst_first() -> None:
    lagging = Symptom(SLO_VIOLATION, "", 0.2, ObjectiveMissed(LAG, 5.0, 6.0))
    late = Symptom(SLO_VIOLATION, "", 0.5, ObjectiveMissed(LATENCY, 10.0, 20.0))

    (diagnosis,) = diagnose(view(), lagging, late)

    assert diagnosis.symptoms == (late, lagging)


@pytest.mark.parametrize("arrival_per_s", [500.0, NAN])
def test_an_objective_missed_though_enough_may_arrive_is_just_unmet(arrival_per_s: float) -> None:
    diagnoses = diagnose(view(arrival_per_s=arrival_per_s, throughput_per_s=500.0), Symptom(SLO_VIOLATION, "", 0.2))

    assert named(diagnoses) == [(SLO_UNMET, "")]


def test_an_objective_missed_because_of_a_component_is_that_components_trouble() -> None:
    snapshot = view(arrival_per_s=500.0, throughput_per_s=500.0)

    diagnoses = diagnose(snapshot, Symptom(SLO_VIOLATION, "", 0.5), pressure(offered_per_s=500.0))

    assert named(diagnoses) == [(UNDER_PROVISIONED, "split")]


def test_a_backlog_that_no_component_explains_is_inconclusive() -> None:
    (clear,) = diagnose(view(), Symptom(GROWING_BACKLOG))
    (blind,) = diagnose(view(), Symptom(GROWING_BACKLOG), unknown())

    assert clear.cause == blind.cause == INCONCLUSIVE
    assert clear.evidence.figures()["why"] == "no component shows pressure"
    assert blind.evidence.figures()["why"] == "metrics are missing"
    assert UNKNOWN in [s.kind for s in blind.symptoms]


def test_what_is_unknown_is_neither_trouble_nor_idleness() -> None:
    assert diagnose(view(), unknown("lines"), unknown("split"), unknown("store")) == []


@pytest.mark.parametrize(("lasting", "is_named"), [(2, False), (3, False), (4, True), (6, True)])
def test_the_longer_an_instance_is_apart_the_less_it_takes(lasting: int, is_named: bool) -> None:
    diagnoses = diagnose(view(split=ONE_SLOW), slow(1.65, lasting))

    assert (named(diagnoses) == [(SLOW_INSTANCE, "split")]) == is_named


def test_a_backlog_beside_time_that_is_lost_is_no_riddle() -> None:
    lost = Symptom(LOST_TIME, "", 0.8, LostTime(SINK_BOUND, 8.0, 14.0, 0.8, 10.0))
    assert diagnose(view(), Symptom(GROWING_BACKLOG), lost) == []
