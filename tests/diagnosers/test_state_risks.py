"""From what is wrong with a state to what a person is told, and that it keeps nothing else from being done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.causes import MEMORY_PRESSURE, OVER_PROVISIONED, STATE_RISKS, declared_causes
from homeostat.core.evidence import Measured
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.observation import StateLimits, StateSample
from homeostat.core.symptoms import (
    FIXED_STATE,
    LONG_REPLAY,
    SNAPSHOT_LAG,
    SNAPSHOT_REPAIRED,
    STATE_GROWS,
    STATE_MEMORY,
    STATE_SYMPTOMS,
)
from homeostat.core.time_causes import STALLED_WATERMARK
from homeostat.diagnosers.state_risks import StateDiagnoser
from homeostat.policies import registry
from homeostat.resolvers.alert import Alert
from homeostat.resolvers.scale import ScaleDownResolver
from homeostat.testing import check_diagnoser, check_policy, instances, observations, play, view_of

SYMPTOMS = [Symptom(kind, "", 0.5, Measured({"operator": "stateStoreSave"})) for kind in sorted(STATE_SYMPTOMS)]


@pytest.mark.slow
def test_it_keeps_its_contract() -> None:
    check_diagnoser(StateDiagnoser(), SYMPTOMS)
    check_policy(registry.build("provisioning"))


def test_every_symptom_of_a_state_has_a_cause_of_its_own_that_says_what_to_do() -> None:
    diagnoses = list(StateDiagnoser().diagnose(view_of(()), SYMPTOMS))

    causes = {diagnosis.cause for diagnosis in diagnoses}
    assert causes == STATE_RISKS - {STALLED_WATERMARK} | {MEMORY_PRESSURE}
    assert causes <= {cause.name for cause in declared_causes() if cause.alerts}
    assert all(diagnosis.symptoms for diagnosis in diagnoses)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (STATE_GROWS, "a watermark, a time to live or a smaller key"),
        (STATE_MEMORY, "more memory"),
        (LONG_REPLAY, "minDeltasForSnapshot"),
        (SNAPSHOT_LAG, "failed uploads"),
        (SNAPSHOT_REPAIRED, "take a savepoint"),
        (FIXED_STATE, "RocksDB provider"),
    ],
)
def test_the_alert_says_where_and_what_to_do(kind: str, advice: str) -> None:
    view = view_of(())
    symptom = Symptom(kind, "", 0.5, Measured({"operator": "stateStoreSave", "versions_behind": 70.0}))

    (proposal,) = Alert().resolve(view, list(StateDiagnoser().diagnose(view, [symptom])))

    assert "operator stateStoreSave, versions behind 70" in proposal.message
    assert advice in proposal.message


@pytest.mark.parametrize(("cause", "gives_back"), [*((cause, True) for cause in STATE_RISKS), (MEMORY_PRESSURE, False)])
def test_only_memory_keeps_executors_from_being_given_back(cause: str, gives_back: bool) -> None:
    tasks = {"lines": instances(100.0, 0.01), "split": instances([100.0] * 4, 1.0)}
    view = view_of(observations(20, tasks, arrival_per_s=130.0))

    proposals = list(ScaleDownResolver().resolve(view, [Diagnosis(OVER_PROVISIONED, "split"), Diagnosis(cause)]))

    assert bool(proposals) is gives_back


def test_the_loop_tells_it_once_and_acts_on_nothing() -> None:
    tasks = {"scan": instances([100.0] * 2, 1.0, finish_s=1.0), "aggregate": instances([100.0] * 2, 4.0, finish_s=4.0)}
    flow = {"arrival_per_s": 20.0, "rows": 200.0, "seconds": 7.5, "trigger_s": 10.0}
    state = StateSample(
        "stateStoreSave",
        "rocksdb",
        partitions=2.0,
        rows=1000.0,
        memory_bytes=9.5e8,
        disk_bytes=1e6,
        stall_s=0.0,
        repaired=0.0,
        snapshot_version=10.0,
        limits=StateLimits(memory_bytes=1e9),
    )
    observed = [
        replace(one, states={"stateStoreSave": replace(state, version=float(one.batch + 1))})
        for one in observations(30, tasks, executors=2, **flow)
    ]

    played = play(registry.build("provisioning"), view_of(observed), observed)

    assert played.actions == ()
    assert [text.partition(" at ")[0] for text in played.texts("alert")] == [
        "The state needs most of the memory that it may use"
    ]
