"""Hot key, hash imbalance and source skew told apart by what the data show; each remedy, and when it is taken back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.actions import ADJUST_SKEW, ALERT, GATHER
from homeostat.core.alert_text import alert_about
from homeostat.core.causes import DATA_SKEW, HASH_IMBALANCE, NEEDLESS_SPREAD, SOURCE_SKEW
from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    SOURCE_PARTITIONS,
    SPREAD,
    STATE_PARTITIONS,
    Capabilities,
    Knob,
    KnobSpec,
)
from homeostat.core.evidence import Measured
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.observation import KeyLoad
from homeostat.core.symptoms import EVEN_KEYS, PRESSURE
from homeostat.core.topology import Component, Topology
from homeostat.core.view import View
from homeostat.detectors.instance_skew import PendingSkewDetector, RateSkewDetector
from homeostat.detectors.needless_spread import EvenKeysDetector
from homeostat.detectors.pressure import PressureEvidence
from homeostat.detectors.uneven_partitions import UnevenPartitionsDetector
from homeostat.diagnosers.weighing import EvidenceDiagnoser
from homeostat.policies import registry
from homeostat.resolvers.spread_keys import AdjustSkewResolver, GatherResolver
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import RunResult, simulate
from homeostat.testing import check_detector, check_diagnoser, check_resolver, instances, observations, view_of

STATE, SPREADING = Knob(STATE_PARTITIONS, "words"), Knob(SPREAD, "words/count")
DEALING, READING = Knob(SPREAD, "words/lines"), Knob(SOURCE_PARTITIONS, "words")
HOT, EVEN = [1600.0, *[100.0] * 7], [287.5] * 8
ROW_S = 0.01
SLOTS = 8


def view(
    rows: Sequence[float] = HOT,
    *,
    largest_key: float | None = None,
    next_keys: Sequence[float] = (),
    name: str = "hot",
    spread: int = 1,
    lines: Sequence[float] = EVEN,
    source_spread: int | None = None,
    source_partitions: int = 8,
    state_partitions: int = 8,
    knob: Knob | None = SPREADING,
    batches: int = 14,
) -> View:
    """Batches on eight executors that take 10 ms a row where words are counted, and 1 ms where lines are read."""
    count, read = np.asarray(rows) * ROW_S, np.asarray(lines) * ROW_S / 10.0
    tasks = {"lines": instances(lines, read, finish_s=read), "count": instances(rows, count, finish_s=count)}
    seconds = 1.0 + float(count.max() + read.max())
    flow = {"arrival_per_s": 230.0, "rows": sum(rows), "seconds": seconds, "trigger_s": 10.0}
    observed = observations(batches, tasks, executors=SLOTS, **flow)
    if largest_key is not None:
        load = KeyLoad(sum(rows), largest_key * sum(rows), name, tuple(share * sum(rows) for share in next_keys))
        observed = tuple(replace(one, keys={"words/count": load}) for one in observed)
    shape = Topology(
        (
            Component(
                "lines",
                "source",
                EXECUTORS_KNOB,
                query="words",
                partitions=READING,
                spread=DEALING if source_spread else None,
            ),
            Component("count", "operator", EXECUTORS_KNOB, ("lines",), "words", True, STATE, knob, "it cannot merge"),
        )
    )
    knobs = {
        EXECUTORS_KNOB: KnobSpec(1, SLOTS, cost=1.0),
        STATE: KnobSpec(1, 1000, live=False, apply_s=30.0),
        READING: KnobSpec(1, 1000, live=False, apply_s=10.0),
        SPREADING: KnobSpec(1, 1000, live=False, apply_s=10.0),
        DEALING: KnobSpec(1, 1000, live=False, apply_s=10.0),
    }
    values = {
        STATE: state_partitions,
        READING: source_partitions,
        SPREADING: spread,
        DEALING: source_spread or 1,
    }
    return view_of(observed, topology=shape, values=values, capabilities=Capabilities(knobs))


def diagnosed(snapshot: View, component: str = "count") -> dict[str, Diagnosis]:
    symptoms = [Symptom(PRESSURE, component, 0.4, PressureEvidence(offered_per_s=230.0))]
    for detector in (RateSkewDetector(), PendingSkewDetector(), UnevenPartitionsDetector()):
        symptoms += detector.detect(snapshot)
    return {d.cause: d for d in EvidenceDiagnoser().diagnose(snapshot, symptoms) if d.component == component}


def test_the_parts_keep_their_contracts() -> None:
    check_detector(EvenKeysDetector())
    check_diagnoser(EvidenceDiagnoser(), [Symptom(EVEN_KEYS, "count", 0.0, Measured({"largest_key_share": 0.01}))])
    for cause in (DATA_SKEW, SOURCE_SKEW, HASH_IMBALANCE):
        check_resolver(AdjustSkewResolver(), [Diagnosis(cause, "count")])
    check_resolver(GatherResolver(), [Diagnosis(NEEDLESS_SPREAD, "count")])


# Which of them it is


def test_a_key_that_has_what_its_partition_has_too_much_is_hot() -> None:
    diagnoses = diagnosed(view(largest_key=0.66))

    assert DATA_SKEW in diagnoses
    assert HASH_IMBALANCE not in diagnoses
    assert diagnoses[DATA_SKEW].evidence.figures()["largest_key_share"] == pytest.approx(0.66)
    assert diagnoses[DATA_SKEW].evidence.figures()["largest_key"] == "hot"
    assert "the largest key hot has 66% of the rows" in alert_about(diagnoses[DATA_SKEW]).message
    assert "largest_key" not in diagnosed(view(largest_key=0.66, name=""))[DATA_SKEW].evidence.figures()


def test_two_hot_keys_that_share_a_partition_are_hot_and_not_the_hash() -> None:
    diagnoses = diagnosed(view(largest_key=0.3, next_keys=[0.29, 0.01, 0.01]))

    assert DATA_SKEW in diagnoses
    assert HASH_IMBALANCE not in diagnoses


def test_two_hot_keys_on_partitions_of_their_own_are_hot() -> None:
    diagnoses = diagnosed(view([850.0, 850.0, *[100.0] * 6], largest_key=0.33, next_keys=[0.32, 0.01]))

    assert DATA_SKEW in diagnoses
    assert HASH_IMBALANCE not in diagnoses


def test_many_keys_on_one_partition_are_the_hash() -> None:
    diagnoses = diagnosed(view(largest_key=0.01, next_keys=[0.01] * 7))

    assert HASH_IMBALANCE in diagnoses
    assert DATA_SKEW not in diagnoses


def test_where_an_operator_cannot_be_spread_its_keys_may_still_be_watched() -> None:
    snapshot = view(largest_key=0.01, knob=None, next_keys=[0.01] * 7)
    assert DATA_SKEW in diagnosed(snapshot)
    assert "largest_key" not in diagnosed(snapshot)[DATA_SKEW].evidence.figures()

    read, counted = snapshot.topology.components
    watched = replace(snapshot, topology=Topology((read, replace(counted, watched="words/count"))))
    assert HASH_IMBALANCE in diagnosed(watched)
    assert diagnosed(watched)[HASH_IMBALANCE].evidence.figures()["largest_key"] == "hot"


def test_partitions_of_the_source_that_get_more_rows_are_a_source_skew() -> None:
    diagnoses = diagnosed(view(EVEN, lines=HOT), "lines")

    assert SOURCE_SKEW in diagnoses
    assert DATA_SKEW not in diagnoses


def test_a_skew_is_seen_as_soon_as_the_pressure_that_it_makes() -> None:
    """Three batches tell of a pressure; had the skew needed a fourth, executors would have been added meanwhile."""
    assert set(diagnosed(view(batches=3, largest_key=0.66))) == {DATA_SKEW}
    assert set(diagnosed(view(EVEN, lines=HOT, batches=3), "lines")) == {SOURCE_SKEW}


@pytest.mark.parametrize("lines", [[2300.0], [1150.0, 1150.0]])
def test_a_source_that_is_empty_but_for_a_partition_or_two_is_skewed(lines: list[float]) -> None:
    snapshot = view(EVEN, lines=lines, source_spread=1)
    assert SOURCE_SKEW in diagnosed(snapshot, "lines")

    (proposal,) = AdjustSkewResolver().resolve(snapshot, [Diagnosis(SOURCE_SKEW, "lines")])
    assert dict(proposal.patch.values) == {DEALING: SLOTS}
    assert SOURCE_SKEW not in diagnosed(view(EVEN, lines=lines, source_partitions=len(lines)), "lines")


def test_partitions_of_the_source_without_a_row_in_tiny_batches_are_chance() -> None:
    assert SOURCE_SKEW not in diagnosed(view(EVEN, lines=[2.0, 2.0, 2.0]), "lines")


def test_keys_that_fall_together_show_also_where_a_hot_one_is_spread() -> None:
    """What comes to the partitions then are parts that were added up before, of which a hot key has no more."""
    crowded = [400.0, 400.0, *[50.0] * 6]
    diagnoses = diagnosed(view(crowded, largest_key=0.5, next_keys=[0.01] * 7, spread=SLOTS))

    assert HASH_IMBALANCE in diagnoses
    assert DATA_SKEW not in diagnoses


# What is done


def test_a_hot_key_is_spread_over_all_slots_with_the_gain_foretold() -> None:
    snapshot = view(largest_key=0.66)
    (proposal,) = AdjustSkewResolver().resolve(snapshot, [Diagnosis(DATA_SKEW, "count")])

    assert (proposal.kind, dict(proposal.patch.values)) == (ADJUST_SKEW, {SPREADING: SLOTS})
    assert proposal.prediction is not None
    even_s = 1.0 + sum(HOT) * ROW_S / SLOTS + EVEN[0] * ROW_S / 10.0
    now_s = 1.0 + max(HOT) * ROW_S + EVEN[0] * ROW_S / 10.0
    assert proposal.prediction.gain == pytest.approx(math.log(now_s / even_s), rel=0.02)


@pytest.mark.parametrize(
    ("snapshot", "cause"),
    [
        pytest.param(view(largest_key=0.66, spread=SLOTS), DATA_SKEW, id="it is spread already"),
        pytest.param(view(EVEN, largest_key=0.01), DATA_SKEW, id="nothing would be won"),
        pytest.param(view(largest_key=0.01), HASH_IMBALANCE, id="other partitions would do"),
    ],
)
def test_nothing_is_spread_without_need(snapshot: View, cause: str) -> None:
    assert list(AdjustSkewResolver().resolve(snapshot, [Diagnosis(cause, "count")])) == []


def test_where_rows_cannot_be_spread_a_person_learns_why() -> None:
    (alert,) = AdjustSkewResolver().resolve(view(knob=None), [Diagnosis(DATA_SKEW, "count")])

    assert (alert.kind, bool(alert.patch)) == (ALERT, False)
    assert "it cannot merge" in alert.message
    assert "hs.keyed" in alert.message


def test_a_source_skew_is_reported_where_nothing_can_be_spread() -> None:
    (alert,) = AdjustSkewResolver().resolve(view(), [Diagnosis(SOURCE_SKEW, "lines")])

    assert alert.kind == ALERT
    assert "repartition behind the source" in alert.message


def test_the_rows_of_an_uneven_source_are_dealt_anew() -> None:
    snapshot = view(EVEN, lines=HOT, source_spread=1)
    (proposal,) = AdjustSkewResolver().resolve(snapshot, [Diagnosis(SOURCE_SKEW, "lines")])

    assert dict(proposal.patch.values) == {DEALING: SLOTS}


# When it is over


def gathered(snapshot: View) -> list[Mapping[Knob, float]]:
    symptoms = list(EvenKeysDetector().detect(snapshot))
    diagnoses = list(EvidenceDiagnoser().diagnose(snapshot, symptoms))
    proposals = list(GatherResolver().resolve(snapshot, diagnoses))
    assert all(proposal.kind == GATHER for proposal in proposals)
    return [dict(proposal.patch.values) for proposal in proposals]


def test_rows_are_gathered_when_no_key_is_hot_any_more() -> None:
    assert gathered(view(EVEN, largest_key=0.02, spread=SLOTS)) == [{SPREADING: 1}]


def test_rows_of_a_source_are_gathered_when_its_partitions_are_even_again() -> None:
    assert gathered(view(EVEN, source_spread=SLOTS)) == [{DEALING: 1}]
    assert gathered(view(EVEN, lines=HOT, source_spread=SLOTS)) == []
    assert gathered(view(EVEN, lines=[1150.0, 1150.0], source_spread=SLOTS)) == []


def test_rows_of_few_even_keys_on_many_partitions_are_gathered() -> None:
    many = [20.0] * 200
    assert gathered(view(many, largest_key=1 / 200, spread=SLOTS, state_partitions=200)) == [{SPREADING: 1}]
    assert gathered(view(many, largest_key=0.05, spread=SLOTS, state_partitions=200)) == []


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(view(EVEN, largest_key=0.2, spread=SLOTS), id="a key is hot"),
        pytest.param(view(EVEN, largest_key=0.05, spread=SLOTS), id="a key is still warm"),
        pytest.param(view(EVEN, largest_key=0.02), id="nothing is spread"),
        pytest.param(view(EVEN, spread=SLOTS), id="nobody knows the keys"),
        pytest.param(view(EVEN, largest_key=0.02, spread=SLOTS, batches=8), id="not for long enough"),
    ],
)
def test_otherwise_they_stay_as_they_are(snapshot: View) -> None:
    assert gathered(snapshot) == []


# In the loop


def simulated(source: ComponentSpec, count: ComponentSpec, *faults: FaultSpec) -> RunResult:
    scenario = Scenario(
        name="hot",
        title="",
        engine=MicrobatchSpec(executors=4, slots=2, max_executors=4),
        duration_s=1700.0,
        components=(source, count),
        workload=WorkloadSpec(rate_per_s=1800.0, noise=Noise(0.05, 0.5)),
        faults=faults,
        service_noise=Noise(0.1, 0.5),
        seed=3,
    )
    return simulate(scenario, registry.build("provisioning"))


def source(rate_per_s: float, *, keyed: bool = False) -> ComponentSpec:
    return ComponentSpec("lines", "source", parallelism=8, rate_per_s=rate_per_s, keyed=keyed, keys=100_000)


def count(rate_per_s: float, turn_s: float = math.inf) -> ComponentSpec:
    spec = ComponentSpec("count", inputs=("lines",), parallelism=16, rate_per_s=rate_per_s, turn_s=turn_s)
    return replace(spec, keyed=True, keys=100_000, stateful=True)


def taken(result: RunResult) -> list[tuple[str, str, bool]]:
    return [(each.action, each.because, each.needless) for each in result.trajectory]


@pytest.mark.slow
def test_an_uneven_source_is_dealt_anew_as_long_as_it_is_uneven() -> None:
    fault = FaultSpec("hot-key", at_s=300.0, until_s=900.0, component="lines", share=0.5)
    result = simulated(source(600.0, keyed=True), count(2000.0), fault)

    assert taken(result) == [
        ("adjust-skew: spread.lines = 8", "source-skew at lines", False),
        ("gather: spread.lines = 1", "needless-spread at lines", False),
    ]
    assert result.trajectory[1].time_s > 900.0


@pytest.mark.slow
def test_a_hot_key_that_is_another_one_every_three_minutes_is_spread_once_and_gathered_once() -> None:
    fault = FaultSpec("hot-key", at_s=300.0, until_s=900.0, component="count", share=0.4)
    result = simulated(source(5000.0), count(500.0, turn_s=180.0), fault)

    assert taken(result) == [
        ("adjust-skew: spread.count = 8", "data-skew at count", False),
        ("gather: spread.count = 1", "needless-spread at count", False),
    ]
    assert result.trajectory[1].time_s > 900.0
