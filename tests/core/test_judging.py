"""From receipt to outcome: what is learned, what is taken back, and what makes a judgement impossible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from homeostat.core.calibration import JudgedCause
from homeostat.core.causes import DATA_SKEW, HASH_IMBALANCE, SLOW_INSTANCE
from homeostat.core.configuration import PARALLELISM, SPREAD, Capabilities, Configuration, Knob, KnobSpec, Patch
from homeostat.core.cycle import step
from homeostat.core.events import Apply, EngineChanged, Event, Notify, Observed, Receipt
from homeostat.core.findings import Diagnosis, Prediction, Proposal, Symptom
from homeostat.core.guards import Bounds, OneInFlight
from homeostat.core.loop_state import State
from homeostat.core.observation import FlowSample, Observation, TaskSample
from homeostat.core.policy_definition import Policy
from homeostat.core.receiving import BETWEEN_EPOCHS
from homeostat.core.sentences import verdict_sentence
from homeostat.core.topology import Component, Topology
from homeostat.core.view import View
from homeostat.testing import Played, described, instances, observations, play, view_of

SPLIT = Knob(PARALLELISM, "split")
APPLIED_AT = 6
IDS = ("a-1", "a-2")


def tasks(row_s: float) -> Mapping[str, TaskSample]:
    return {
        "lines": instances(100.0, 0.1),
        "split": instances([50.0, 50.0], 50.0 * row_s),
        "count": instances([50.0, 50.0], 0.5),
    }


def measured(before_s: float = 0.1, after_s: float = 0.1, count: int = 40) -> tuple[Observation, ...]:
    """Time per row of split, before and after the sixth measurement."""
    return observations(count, lambda n: tasks(before_s if n < APPLIED_AT else after_s), arrival_per_s=10.0)


ENGINE = view_of(measured())


@dataclass(frozen=True)
class Once:
    """Trouble at split that ends with the action; at count it begins when told to."""

    also_from_s: float = 1e9
    gain: float = 0.7
    knob: Knob = SPLIT
    touched: tuple[str, ...] = ("split",)
    name: str = "once"

    def detect(self, view: View) -> Iterable[Symptom]:
        yield Symptom("trouble", "split", 0.5)
        if view.now_s >= self.also_from_s:
            yield Symptom("speed-skew", "count", 0.5)

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        causes = {"trouble": "cause", "speed-skew": SLOW_INSTANCE}
        return [Diagnosis(causes[s.kind], s.component, 0.9, symptoms=(s,)) for s in symptoms]

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        if view.now_s >= 10.0 * APPLIED_AT:
            for diagnosis in diagnoses[:1]:
                patch = Patch({self.knob: 4})
                yield Proposal("grow", (diagnosis,), patch, "split", Prediction(self.gain, self.touched))


def run(
    observed: Sequence[Observation], part: Once | None = None, extra: Mapping[int, Sequence[Event]] | None = None
) -> Played:
    once = part or Once()
    return play(Policy("once", (once,), (once,), (once,)), ENGINE, observed, extra=extra)


def test_what_helped_is_kept_and_remembered() -> None:
    played = run(measured(0.1, 0.05))
    assert played.texts("outcome") == ["a-1 helped"]
    assert played.texts("action") == ["grow: parallelism.split = 4"]
    assert [(entry.verdict, entry.key.action) for entry in played.state.memory] == [("helped", "grow")]


@pytest.mark.parametrize(("after_s", "helped"), [(0.05, True), (0.1, False)])
def test_an_outcome_corrects_the_probability_of_the_cause_it_was_for(after_s: float, helped: bool) -> None:
    played = run(measured(0.1, after_s))
    assert played.state.judged == {"cause": (JudgedCause(0.9, helped),)}
    standing = played.state.diagnoses["cause", "split"].finding
    assert isinstance(standing, Diagnosis)
    assert standing.before_outcomes == 0.9
    assert (standing.probability > 0.9) is helped


@pytest.mark.parametrize(("after_s", "verdict"), [(0.2, "harmful"), (0.1, "failed")])
def test_what_harmed_or_failed_is_taken_back_and_not_repeated_for_a_while(after_s: float, verdict: str) -> None:
    played = run(measured(0.1, after_s, 35))
    assert played.texts("outcome")[0].startswith(verdict_sentence("a-1", verdict) + ": ")
    assert played.texts("action")[:2] == ["grow: parallelism.split = 4", "revert: parallelism.split = 2"]
    first, second = played.actions[0], played.actions[1]
    assert second.desired == Configuration({**first.desired.values, SPLIT: 2})
    assert len(played.actions) == 2, "four settling times have not passed"
    assert any(text.startswith("Waiting: memory: did not help 1×") for text in played.texts("rejection"))


def test_after_its_rest_it_is_tried_again() -> None:
    played = run(measured(0.1, 0.1, 60))
    assert played.texts("action") == ["grow: parallelism.split = 4", "revert: parallelism.split = 2"] * 2


def test_an_error_is_charged_to_every_component_that_the_prediction_was_about() -> None:
    played = run(measured(0.1, 0.05), Once(touched=("split", "count")))
    assert played.state.trust.keys() == {"split", "count"}
    assert played.state.trust["split"] == played.state.trust["count"]


def test_the_first_measurement_after_an_action_does_not_count() -> None:
    odd = list(measured(0.1, 0.05))
    odd[APPLIED_AT] = replace(odd[APPLIED_AT], tasks=tasks(0.9))
    outcome = next(record for record in run(odd).records if record.kind == "outcome")
    assert outcome.body["verdict"] == "helped"
    assert outcome.at_s == 10.0 * (APPLIED_AT + 6)


def test_a_batch_that_finds_cold_processes_counts_for_nothing_though_empty_ones_went_before_it() -> None:
    def observation_of(number: int) -> Observation:
        flow = FlowSample("lines", rows=100.0 * (number > 0), seconds=9.0 if number == 1 else 3.0, trigger_s=5.0)
        return replace(measured()[number], batch=number, run="run", flows=(flow,))

    state = State()
    for number in range(4):
        state, _, _ = step(Policy("watch"), state, [Observed(observation_of(number))], 10.0 * (number + 1))
    assert [digest.epoch for digest in state.history] == [BETWEEN_EPOCHS, BETWEEN_EPOCHS, 0, 0]


def confounded_by(played: Played) -> str:
    first = played.texts("outcome")[0]
    assert first.startswith("Could not tell whether a-1 helped: ")
    assert not played.state.memory, "it proves nothing"
    assert played.texts("action")[0] == "grow: parallelism.split = 4"
    assert "revert: parallelism.split = 2" not in played.texts("action")
    return first.removeprefix("Could not tell whether a-1 helped: ")


def test_workers_that_come_and_go_confound() -> None:
    observed = list(measured(0.1, 0.05, 10))
    ids = observed[9].workers.ids
    observed[9] = replace(observed[9], workers=replace(observed[9].workers, ids=("lines-7", *ids[1:])))
    assert confounded_by(run(observed)) == "the workers changed without a command"


def test_a_lost_worker_confounds() -> None:
    observed = list(measured(0.1, 0.05, 10))
    alive = observed[9].workers.alive.copy()
    alive[0] = False
    observed[9] = replace(observed[9], workers=replace(observed[9].workers, alive=alive))
    assert confounded_by(run(observed)) == "a worker was lost"


def test_a_change_of_the_engine_confounds() -> None:
    plan = EngineChanged(
        replace(ENGINE.topology, plan="2"), ENGINE.configuration, ENGINE.capabilities, 85.0, "new plan"
    )
    assert confounded_by(run(measured(0.1, 0.05, 10), extra={8: [plan]})) == "the engine changed: new plan"


def test_another_plan_is_what_spreading_does_and_does_not_confound() -> None:
    spread = Knob(SPREAD, "split")
    after = ENGINE.configuration.patched(Patch({spread: 4}))
    plan = EngineChanged(replace(ENGINE.topology, plan="2"), after, ENGINE.capabilities, 85.0, "new plan")
    played = run(measured(0.1, 0.05), Once(knob=spread), extra={8: [plan]})
    assert played.texts("action")[0] == "grow: spread.split = 4"
    assert played.texts("outcome")[0] == "a-1 helped"


def test_a_new_cause_elsewhere_confounds() -> None:
    reason = confounded_by(run(measured(0.1, 0.05, 12), Once(also_from_s=90.0)))
    assert reason == "a new problem appeared elsewhere: slow-instance at count"


@dataclass(frozen=True)
class FindsSlow(Once):
    """Some workers of split, which is touched, are found slow while the action is judged."""

    found_at_s: float = 10.0 * (APPLIED_AT + 3)
    slow: tuple[str, ...] = ("split-0",)

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        yield Diagnosis("cause", "split", 0.9, symptoms=tuple(symptoms))
        if view.now_s >= self.found_at_s:
            yield Diagnosis(SLOW_INSTANCE, "split", 0.9, symptoms=tuple(symptoms), workers=self.slow)


@dataclass(frozen=True)
class FindsUneven(Once):
    """While the action is judged, the rows of split, which is touched, are found to be uneven."""

    cause: str = DATA_SKEW

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        yield Diagnosis("cause", "split", 0.9, symptoms=tuple(symptoms))
        if view.now_s >= 10.0 * (APPLIED_AT + 3):
            yield Diagnosis(self.cause, "split", 0.9, symptoms=tuple(symptoms))


def test_a_hot_key_that_is_found_meanwhile_is_not_what_the_action_did() -> None:
    reason = confounded_by(run(measured(0.1, 0.2, 35), FindsUneven()))
    assert reason == "a new problem appeared: data-skew at split"
    by_hash = run(measured(0.1, 0.2, 35), FindsUneven(cause=HASH_IMBALANCE))
    assert by_hash.texts("outcome")[0].startswith(verdict_sentence("a-1", "harmful")), "it hashes the keys anew"
    gathered = run(measured(0.1, 0.2, 35), FindsUneven(knob=Knob(SPREAD, "split")))
    assert gathered.texts("outcome")[0].startswith(verdict_sentence("a-1", "harmful")), "it distributes these rows"


def slow_from(first: int, count: int = 35) -> tuple[Observation, ...]:
    """From the measurement `first` on, the first worker of split takes twice as long."""

    def one_slow(number: int) -> Mapping[str, TaskSample]:
        first_s = 10.0 if number >= first else 5.0
        return {**tasks(0.1), "split": instances([50.0, 50.0], [first_s, 5.0])}

    return observations(count, one_slow, arrival_per_s=10.0)


def test_a_worker_that_turns_slow_while_an_action_is_judged_confounds_though_it_is_where_the_action_was() -> None:
    reason = confounded_by(run(slow_from(APPLIED_AT + 1), FindsSlow()))
    assert reason == "a new problem appeared: slow-instance at split, where split-0 had been as fast as the others"


def renamed_from(first: int, observed: Sequence[Observation]) -> list[Observation]:
    """From the measurement `first` on, split-7 is there instead of split-0."""

    def ids(number: int, observation: Observation) -> tuple[str, ...]:
        before = observation.workers.ids
        return tuple("split-7" if id == "split-0" and number >= first else id for id in before)

    return [replace(o, workers=replace(o.workers, ids=ids(number, o))) for number, o in enumerate(observed)]


def blamed(observed: Sequence[Observation], slow: str) -> str:
    played = run(observed, FindsSlow(slow=(slow,)))
    assert "revert: parallelism.split = 2" in played.texts("action")
    return played.texts("outcome")[0]


def test_a_worker_that_came_with_the_action_may_be_slow_because_of_it() -> None:
    observed = renamed_from(APPLIED_AT, slow_from(APPLIED_AT))
    assert blamed(observed, "split-7").startswith(verdict_sentence("a-1", "harmful"))


def test_what_was_slow_before_and_is_found_late_is_what_the_action_did_not_mend() -> None:
    assert blamed(slow_from(0), "split-0").startswith(verdict_sentence("a-1", "failed"))


@dataclass(frozen=True)
class FindsSlowWhenJudged(FindsSlow):
    """The slow worker is found in the very cycle in which the judge would find the action harmful."""

    found_at_s: float = 10.0 * (APPLIED_AT + 6)


def test_the_judge_hears_what_the_detectors_see_in_the_same_cycle() -> None:
    reason = confounded_by(run(slow_from(APPLIED_AT + 1), FindsSlowWhenJudged()))
    assert reason == "a new problem appeared: slow-instance at split, where split-0 had been as fast as the others"


def test_no_action_is_blamed_while_a_worker_may_have_turned_slow_though_no_detector_is_sure() -> None:
    played = run(slow_from(APPLIED_AT + 1))
    assert confounded_by(played) == "split-0 may have become slow"
    assert "revert: parallelism.split = 2" not in played.texts("action")


def test_a_stage_that_was_not_touched_confounds() -> None:
    observed = list(measured(0.1, 0.05, 14))
    for number in range(APPLIED_AT, 14):
        slower = {**observed[number].tasks, "count": instances([50.0, 50.0], 1.0)}
        observed[number] = replace(observed[number], tasks={**observed[number].tasks, "count": slower["count"]})
    assert confounded_by(run(observed)) == "the speed of count, which the action did not touch, changed by -50%"


def two_queries() -> tuple[View, Policy]:
    """Two queries, each too small from the start; nothing but bounds and one action at a time for each."""
    shape = Topology(
        tuple(Component(name, "source", Knob(PARALLELISM, name), query=name) for name in ("clicks", "orders"))
    )
    knobs = {component.scaled_by: KnobSpec(1, 9, live=False, cost=1.0) for component in shape}
    view = view_of((), topology=shape, capabilities=Capabilities(knobs))

    @dataclass(frozen=True)
    class Each:
        name: str = "each"

        def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
            return [Diagnosis("cause", name) for name in shape.names]

        def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
            for diagnosis in diagnoses:
                patch = Patch({Knob(PARALLELISM, diagnosis.component): 3})
                yield Proposal("grow", (diagnosis,), patch, diagnosis.component, Prediction(1.0))

    return view, Policy("each", (), (Each(),), (Each(),), guards=(OneInFlight(), Bounds()))


def test_a_command_for_one_query_does_not_take_back_that_for_another() -> None:
    view, policy = two_queries()
    state, _, _ = step(policy, State(mode="regulate"), [described(view)], 0.0)
    batches = observations(3, {"clicks": instances(1.0, 1.0)})
    state, commands, _ = step(policy, state, [Observed(batches[0])], 10.0)
    first, second = (command for command in commands if isinstance(command, Apply))
    assert (first.id, second.id) == IDS
    both = {Knob(PARALLELISM, "clicks"): 3, Knob(PARALLELISM, "orders"): 3}
    assert dict(first.desired.values) == {**both, Knob(PARALLELISM, "orders"): 1}
    assert dict(second.desired.values) == both
    state, _, _ = step(policy, state, [Receipt(first.id, 12.0, first.desired)], 12.0)
    assert dict(state.observed.values) == {**both, Knob(PARALLELISM, "orders"): 1}
    assert dict(state.desired.values) == both, "the other one is still wanted"
    assert next(a for a in state.active if a.command.id == first.id).disturbed == ""
    state, _, trace = step(policy, state, [Receipt(second.id, 15.0, second.desired)], 15.0)
    outcomes = {record.text for record in trace.records if record.kind == "outcome"}
    assert outcomes == {
        verdict_sentence(mine, "confounded", f"{other} was applied meanwhile") for mine, other in (IDS, IDS[::-1])
    }


def test_a_command_that_is_never_acknowledged_is_given_up_and_what_comes_later_is_still_believed() -> None:
    played = play(Policy("once", (Once(),), (Once(),), (Once(),)), ENGINE, measured(count=31), acknowledge=False)
    assert played.texts("receipt") == ["a-1 was never acknowledged"]
    given_up = next(record for record in played.records if record.kind == "receipt")
    assert given_up.at_s > played.actions[0].at_s + played.actions[0].time_limit_s
    late = Receipt("a-1", 315.0, played.actions[0].desired)
    epoch = played.state.epoch
    state, _, _ = step(Policy("quiet"), replace(played.state, active=()), [late], 315.0)
    assert state.observed[SPLIT] == 4
    assert state.epoch == epoch + 1, "what was measured before says nothing about this"
    assert state.window == ()


def test_a_refused_command_changes_nothing_and_is_not_an_outcome() -> None:
    once = Once()
    policy = Policy("once", (once,), (once,), (once,))
    played = play(policy, ENGINE, measured(count=APPLIED_AT), acknowledge=False)
    refused = Receipt("a-1", 61.0, ENGINE.configuration, False, "no room")
    state, commands, trace = step(policy, played.state, [refused], 61.0)
    assert [record.text for record in trace.records] == ["a-1 did not take effect: no room"]
    assert commands == ()
    assert state.active == ()
    assert state.observed == ENGINE.configuration


def test_what_a_person_should_know_of_an_action_that_took_effect_is_reported() -> None:
    once = Once()
    policy = Policy("once", (once,), (once,), (once,))
    played = play(policy, ENGINE, measured(count=APPLIED_AT), acknowledge=False)
    warned = Receipt("a-1", 61.0, played.actions[0].desired, warning="it came up on the same host")
    _, commands, trace = step(policy, played.state, [warned], 61.0)
    (notice,) = commands
    assert isinstance(notice, Notify)
    assert (notice.message, notice.because) == ("it came up on the same host", ("a-1",))
    assert [record.text for record in trace.records if record.kind == "alert"] == ["it came up on the same host"]
