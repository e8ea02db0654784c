"""What is noticed while the configuration is too new for a cycle."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.cycle import Trace, step
from homeostat.core.events import EngineChanged, Notify, Observed, SourceSeen
from homeostat.core.loop_state import State
from homeostat.core.observation import Observation, WorkerLoss
from homeostat.core.policy_definition import Policy
from homeostat.core.records import DiagnosisContent
from homeostat.core.source_sample import SourceSample
from homeostat.core.time_causes import DYING_EXECUTORS, SINK_BOUND
from homeostat.detectors.failed_work import LostWorkersDetector
from homeostat.detectors.lost_time import LostTimeDetector
from homeostat.detectors.source_trouble import SourceTroubleDetector
from homeostat.diagnosers.lost_time import LostTimeDiagnoser
from homeostat.diagnosers.source_trouble import SourceDiagnoser
from homeostat.resolvers.alert import Alert
from homeostat.testing import view_of
from support.growing_loop import Grow, Trouble
from support.timed_batches import slow_sink

CALM = slow_sink(0.1, 8)
ENGINE = view_of(CALM)
# A cycle is never due: there are fewer observations than it waits for.
PATIENT = Policy(
    "patient",
    (LostWorkersDetector(), Trouble()),
    (LostTimeDiagnoser(), Trouble()),
    (Alert(declared_only=True), Grow()),
    least_observations=100,
)


def play(observed: list[Observation], policy: Policy = PATIENT) -> list[Trace]:
    state = State()
    started = [EngineChanged(ENGINE.topology, ENGINE.configuration, ENGINE.capabilities, 0.0)]
    traces = []
    for observation in observed:
        state, _, trace = step(policy, state, [*started, Observed(observation)], observation.at_s)
        started = []
        traces.append(trace)
    return traces


def dying(batches: int) -> list[Observation]:
    lost = (WorkerLoss("7", "a", "out of memory"),)
    return [replace(each, losses=lost) if number < batches else each for number, each in enumerate(CALM)]


def test_executors_that_keep_dying_are_named_and_alerted_once_although_no_cycle_is_due() -> None:
    traces = play(dying(4))
    assert all(trace.conditions for trace in traces)
    assert [d.cause for d in traces[-1].diagnoses] == [DYING_EXECUTORS]
    kinds = [record.kind for trace in traces for record in trace.records]
    assert (kinds.count("symptom"), kinds.count("diagnosis"), kinds.count("alert")) == (1, 1, 1)


def test_other_plug_ins_wait_for_the_cycle() -> None:
    traces = play(dying(4))
    assert {symptom.kind for trace in traces for symptom in trace.symptoms} == {"lost-workers"}
    assert not any(trace.proposals for trace in traces)


def test_a_quiet_engine_writes_nothing() -> None:
    assert not any(record.kind != "engine" for trace in play(dying(0)) for record in trace.records)


def test_time_that_is_lost_meanwhile_is_named_beside_the_deaths() -> None:
    lost = (WorkerLoss("7", "a", "out of memory"),)
    observed = [replace(each, losses=lost) for each in slow_sink(12.0, 8)]
    policy = replace(PATIENT, detectors=(*PATIENT.detectors, LostTimeDetector()))
    traces = play(observed, policy)
    assert {d.cause for d in traces[-1].diagnoses} == {DYING_EXECUTORS, SINK_BOUND}


def test_a_source_that_does_not_answer_is_alerted_before_the_first_batch_and_over_once_it_does() -> None:
    policy = replace(
        PATIENT,
        detectors=(LostWorkersDetector(), SourceTroubleDetector()),
        diagnosers=(SourceDiagnoser(),),
    )
    state, alerts = State(), []
    for at_s, silent_s in ((1.0, 1.0), (7.0, 7.0), (8.0, 8.0), (9.0, 0.0)):
        sample = SourceSample("orders", "orders at b:1", at_s, silent_s=silent_s)
        state, commands, trace = step(policy, state, [SourceSeen(sample)], at_s)
        alerts += [command.message for command in commands if isinstance(command, Notify)]
    assert len(alerts) == 1
    assert "orders at b:1: no answer for 7 s" in alerts[0]
    assert "check that the brokers run" in alerts[0]
    assert [record.content.over for record in trace.records if isinstance(record.content, DiagnosisContent)] == [True]
    assert (state.symptoms, state.diagnoses) == ({}, {})
