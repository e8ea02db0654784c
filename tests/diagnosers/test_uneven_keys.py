"""Partitions that stay uneven: because of a hot key, or because of the hash; and what is done about the latter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.causes import DATA_SKEW, HASH_IMBALANCE
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.observation import NAN
from homeostat.core.symptoms import PENDING_SKEW, PRESSURE, RATE_SKEW, UNEVEN
from homeostat.core.view import View
from homeostat.detectors.instance_skew import PendingSkewDetector, RateSkewDetector
from homeostat.detectors.pressure import PressureEvidence
from homeostat.detectors.uneven_partitions import UnevenEvidence, UnevenPartitionsDetector
from homeostat.diagnosers.weighing import EvidenceDiagnoser
from homeostat.policies import registry
from homeostat.resolvers.rebalance import RebalanceResolver
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import RunResult, simulate
from homeostat.store.in_memory import MemoryStore
from homeostat.testing import check_detector, check_diagnoser, check_resolver
from support.uneven import EMPTY_ONES, HOT, Rows, view


def uneven(snapshot: View) -> list[Symptom]:
    return list(UnevenPartitionsDetector().detect(snapshot))


def causes(snapshot: View) -> dict[str, float]:
    """Of the stage that counts, under pressure."""
    symptoms = [Symptom(PRESSURE, "count", 0.4, PressureEvidence(offered_per_s=200.0)), *uneven(snapshot)]
    symptoms += [*RateSkewDetector().detect(snapshot), *PendingSkewDetector().detect(snapshot)]
    return {d.cause: d.probability for d in EvidenceDiagnoser().diagnose(snapshot, symptoms) if d.component == "count"}


def test_the_parts_keep_their_contracts() -> None:
    symptoms = [Symptom(PRESSURE, "count", 0.4), Symptom(UNEVEN, "count", 0.5, UnevenEvidence(2.0, 4.0, 0.0), (0,))]
    check_detector(UnevenPartitionsDetector())
    check_diagnoser(EvidenceDiagnoser(), symptoms)
    check_resolver(RebalanceResolver(), [Diagnosis(HASH_IMBALANCE, "count")])


# To see it


def test_partitions_of_which_most_are_empty_are_uneven() -> None:
    (symptom,) = uneven(view(EMPTY_ONES))

    assert (symptom.kind, symptom.component, symptom.instances) == (UNEVEN, "count", (0, 4))
    assert symptom.evidence.figures()["largest_over_mean"] == pytest.approx(4.0)
    assert symptom.evidence.figures()["almost_empty"] == 6.0


def test_half_of_many_partitions_may_be_empty_where_none_stands_out() -> None:
    half = [200.0, 0.0] * 8

    assert list(RateSkewDetector().detect(view(half))) == []
    assert [symptom.evidence.figures()["largest_over_mean"] for symptom in uneven(view(half))] == [2.0]


def wandering(number: int) -> list[float]:
    return [600.0 if index == number % 8 else 150.0 for index in range(8)]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([200.0] * 8, id="even"),
        pytest.param([280.0, *[190.0] * 7], id="a little"),
        pytest.param(wandering, id="another each time"),
        pytest.param([8.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], id="hardly any rows"),
        pytest.param([NAN] * 8, id="unknown"),
    ],
)
def test_other_partitions_are_not_uneven(rows: Rows) -> None:
    assert uneven(view(rows)) == []


@pytest.mark.parametrize("seed", range(20))
def test_noise_does_not_make_even_partitions_uneven(seed: int) -> None:
    drawn = np.random.default_rng(seed).poisson(60.0, (8, 8)).astype(float)
    assert uneven(view(lambda number: drawn[number].tolist())) == []


# To tell why


@pytest.mark.parametrize("rows", [EMPTY_ONES, [200.0, 0.0] * 8, [400.0, 400.0, 400.0, *[100.0] * 13]])
def test_keys_that_fall_together_are_distinguished_from_a_hot_one_by_the_shape(rows: list[float]) -> None:
    probabilities = causes(view(rows))

    assert probabilities[HASH_IMBALANCE] > 0.6
    assert DATA_SKEW not in probabilities


def test_a_hot_key_stays_data_skew() -> None:
    probabilities = causes(view(HOT))

    assert probabilities[DATA_SKEW] > 0.9
    assert HASH_IMBALANCE not in probabilities


def test_the_keys_themselves_outweigh_the_shape() -> None:
    """In the partition that looks hot are most of the keys; and the two that are not empty have two hot ones."""
    assert set(causes(view(HOT, imbalance={8: 5.0}))) >= {HASH_IMBALANCE}
    assert HASH_IMBALANCE not in causes(view(EMPTY_ONES, imbalance={8: 1.1}))
    assert DATA_SKEW in causes(view(EMPTY_ONES, imbalance={8: 1.1}))


def test_without_pressure_there_is_no_diagnosis() -> None:
    assert list(EvidenceDiagnoser().diagnose(view(EMPTY_ONES), uneven(view(EMPTY_ONES)))) == []


# In the loop


def simulated(*faults: FaultSpec, spread: bool = True) -> tuple[RunResult, MemoryStore]:
    """A count at three quarters of what it can take, until something happens after five minutes."""
    scenario = Scenario(
        name="uneven",
        title="",
        engine=MicrobatchSpec(executors=4, slots=2),
        duration_s=1500.0,
        components=(
            ComponentSpec("lines", kind="source", parallelism=8, rate_per_s=5000.0),
            ComponentSpec(
                "count", inputs=("lines",), parallelism=16, rate_per_s=500.0, keyed=True, keys=100_000, stateful=True
            ),
        ),
        workload=WorkloadSpec(rate_per_s=2200.0, noise=Noise(0.05, 0.5)),
        faults=faults,
        service_noise=Noise(0.1, 0.5),
        seed=3,
    )
    policy = registry.build("provisioning")
    if not spread:
        policy = replace(policy, resolvers=tuple(r for r in policy.resolvers if r.name != "adjust-skew"))
    store = MemoryStore()
    return simulate(scenario, policy, store=store, run="test"), store


IMBALANCE = FaultSpec("hash-imbalance", at_s=300.0, component="count", stride=4)


@pytest.mark.slow
def test_on_the_simulator_an_imbalanced_hash_is_mended_by_another_number_of_partitions() -> None:
    result, store = simulated(IMBALANCE, spread=False)

    assert [taken.action for taken in result.trajectory] == ["adjust-skew: state_partitions.main = 23"]
    assert not any(taken.needless for taken in result.trajectory)
    assert result.as_json()["converged"]
    diagnosed = [r.body["cause"] for r in store.records("test", kinds=("diagnosis",)) if not r.body.get("over")]
    assert HASH_IMBALANCE in diagnosed
    assert DATA_SKEW not in diagnosed
    assert [r.body["verdict"] for r in store.records("test", kinds=("outcome",))] == ["helped"]


@pytest.mark.slow
def test_keys_that_fall_together_are_not_spread_where_they_could_be() -> None:
    result, _ = simulated(IMBALANCE)

    assert [taken.action.partition(" =")[0] for taken in result.trajectory] == ["adjust-skew: state_partitions.main"]
    assert result.as_json()["converged"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param((), marks=pytest.mark.soak),
        (FaultSpec("hot-key", at_s=300.0, component="count", share=0.3),),
    ],
)
def test_nothing_else_is_taken_for_an_imbalanced_hash(faults: tuple[FaultSpec, ...]) -> None:
    _, store = simulated(*faults)

    assert HASH_IMBALANCE not in [r.body.get("cause") for r in store.records("test", kinds=("diagnosis",))]


def test_the_symptoms_of_a_skew_are_not_taken_for_its_cause() -> None:
    """Rows and finish apart together, as a hot key makes them, but keys that fall together as well."""
    snapshot = view(EMPTY_ONES)
    kinds = {s.kind for s in (*RateSkewDetector().detect(snapshot), *PendingSkewDetector().detect(snapshot))}

    assert kinds == {RATE_SKEW, PENDING_SKEW}
    assert DATA_SKEW not in causes(snapshot)
