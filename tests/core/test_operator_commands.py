"""Observe, advise, earn, regulate; and what a person may say to the loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pytest

from homeostat.core.actions import ALERT, REPLACE
from homeostat.core.causes import RISE_AHEAD
from homeostat.core.configuration import PARALLELISM, Knob, Patch
from homeostat.core.cycle import step
from homeostat.core.events import Notify, Observed, Operator
from homeostat.core.evidence import LoadRise
from homeostat.core.findings import Diagnosis, Outcome, Prediction, Proposal, Symptom, Verdict
from homeostat.core.loop_state import Mode, State
from homeostat.core.objective import Objective
from homeostat.core.observation import Observation
from homeostat.core.policy import Policy
from homeostat.core.trial import Trial
from homeostat.core.view import View
from homeostat.testing import Played, instances, observations, play, view_of

SPLIT = Knob(PARALLELISM, "split")
TASKS = {"lines": instances(100.0, 1.0), "split": instances([50.0, 50.0], 5.0)}
SEEN = observations(60, TASKS, arrival_per_s=10.0)
ENGINE = view_of(SEEN)
CAUSE = Diagnosis("cause", "split", 0.9)


@dataclass(frozen=True)
class Trouble:
    """At split, from the first to the last measurement given, but not in the pauses."""

    until_s: float = 1e9
    pauses_s: tuple[tuple[float, float], ...] = ()
    name: str = "trouble"

    def detect(self, view: View) -> Iterable[Symptom]:
        if view.now_s < self.until_s and not any(low <= view.now_s < high for low, high in self.pauses_s):
            yield Symptom("trouble", "split", 0.5)

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        return [replace(CAUSE, symptoms=(symptom,)) for symptom in symptoms]


@dataclass(frozen=True)
class Grow:
    """One instance more, up to a most."""

    most: int = 3
    name: str = "grow"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        for diagnosis in diagnoses:
            more = min(self.most, int(view.configuration[SPLIT]) + 1)
            yield Proposal("grow", (diagnosis,), Patch({SPLIT: more}), "split", Prediction(0.5, ("split",)))


@dataclass(frozen=True)
class Says:
    verdict: Verdict
    after_s: float = 30.0

    def judge(self, trial: Trial) -> Outcome | None:
        return Outcome(self.verdict) if trial.elapsed_s >= self.after_s else None


def policy(trouble: Trouble | None = None, verdict: Verdict = "helped", most: int = 3) -> Policy:
    parts = trouble or Trouble()
    return Policy("test", (parts,), (parts,), (Grow(most),), judge=Says(verdict), settle_s=60.0)


def run(mode: Mode, observed: Sequence[Observation] = SEEN, **parts: object) -> Played:
    return play(policy(**parts), ENGINE, observed, mode=mode)  # type: ignore[arg-type]


def test_observe_only_sees_and_tells_a_person_once() -> None:
    played = run("observe")
    assert played.actions == ()
    assert played.texts("diagnosis") == ["split has the problem 'cause' (cause, probability 0.90)"]
    assert played.texts("alert") == [
        "cause at split. Homeostat only observes; otherwise it would grow: parallelism.split = 3"
    ]
    assert played.texts("rejection") == ["Waiting: mode: only observing"]
    assert len(played.texts("proposal")) == 1, "not one for each measurement"


def test_advise_says_what_it_would_do_and_scores_it_by_what_then_happened() -> None:
    played = run("advise", SEEN[:12], trouble=Trouble(until_s=1000.0))
    assert played.commands == ()
    assert played.texts("advice") == ["Homeostat would grow: parallelism.split = 3"] * 2
    assert played.texts("outcome") == ["v-1 was right: the problem stayed"]
    assert len(played.texts("proposal")) == 2
    played = run("advise", SEEN[:12], trouble=Trouble(until_s=35.0))
    assert played.texts("outcome") == ["v-1 was not needed: the problem went away"]


def test_earn_acts_once_its_advice_has_proved_right_three_times() -> None:
    played = run("earn")
    assert played.actions[0].at_s == 190.0, "after three times a minute"
    assert played.texts("outcome")[:3] == [f"v-{n} was right: the problem stayed" for n in (1, 2, 3)]
    doubtful = run("earn", trouble=Trouble(pauses_s=((60.0, 90.0), (180.0, 220.0), (300.0, 350.0), (430.0, 480.0))))
    assert doubtful.actions == (), "what goes away by itself earns nothing"


@dataclass(frozen=True)
class Foretold:
    """The same forecast again and again: within the minute more than 20 rows/s will come."""

    name: str = "foretold"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        yield Diagnosis(RISE_AHEAD, "split", 0.9, LoadRise(15.0, 30.0, ahead_s=40.0, limit_per_s=20.0, over_limit=1.5))


@pytest.mark.parametrize(
    ("then_per_s", "said"), [(25.0, "right: the load has come"), (10.0, "not needed: the load has not come")]
)
def test_advice_about_a_rise_is_scored_by_the_load_that_came_and_not_by_the_forecast(
    then_per_s: float, said: str
) -> None:
    arrivals = [10.0 if number < 12 else then_per_s for number in range(150)]
    seen = observations(150, TASKS, arrival_per_s=arrivals)
    foretold = Policy("test", (), (Foretold(),), (Grow(),), judge=Says("helped"), settle_s=60.0)
    played = play(foretold, ENGINE, seen, mode="earn")
    first = next(record for record in played.records if record.kind == "outcome")
    assert first.text == f"v-1 was {said}"
    assert first.at_s == 290.0, "40 s ahead, three minutes in which it may come, and one until that is known"
    assert bool(played.actions) == (then_per_s > 20.0)


def test_regulate_acts() -> None:
    played = run("regulate", SEEN[:3])
    assert [dict(action.desired.values)[SPLIT] for action in played.actions] == [3]
    assert played.texts("action") == ["grow: parallelism.split = 3"]
    assert played.texts("receipt") == ["a-1 took effect"]


def say(command: str, target: str = "") -> Operator:
    return Operator(command, "Ada", "because", target)  # type: ignore[arg-type]


def test_a_paused_loop_sees_but_does_nothing_until_it_is_resumed() -> None:
    played = play(policy(), ENGINE, SEEN, extra={0: [say("pause")], 5: [say("resume")]})
    assert played.actions[0].at_s == 60.0
    assert played.texts("operator") == ["Ada: pause (because)", "Ada: resume (because)"]
    assert played.texts("rejection")[0] == "Waiting: kill switch: paused by Ada: because"


def test_a_paused_loop_does_not_even_take_back_what_did_harm() -> None:
    played = play(policy(verdict="harmful"), ENGINE, SEEN[:10], extra={2: [say("pause")]})
    assert played.texts("action") == ["grow: parallelism.split = 3"]
    assert "Waiting: a-1 is not taken back: paused by Ada: because" in played.texts("rejection")
    free = play(policy(verdict="harmful"), ENGINE, SEEN[:10])
    assert free.texts("action") == ["grow: parallelism.split = 3", "revert: parallelism.split = 2"]


def test_approved_advice_becomes_an_action_and_is_scored_no_more() -> None:
    played = play(policy(), ENGINE, SEEN[:20], mode="advise", extra={3: [say("approve", "v-1")]})
    assert [action.at_s for action in played.actions] == [40.0]
    action = next(record for record in played.records if record.kind == "action")
    assert action.because[0] == "v-1"
    assert not [text for text in played.texts("outcome") if text.startswith("v-1")]


def test_a_resolver_is_run_by_hand_against_the_diagnoses_that_stand() -> None:
    played = play(policy(), ENGINE, SEEN[:20], mode="advise", extra={3: [say("resolve", "grow")]})
    assert [action.at_s for action in played.actions] == [40.0]
    action = next(record for record in played.records if record.kind == "action")
    assert action.text == "grow: parallelism.split = 3"
    assert action.because == ("o-1", "d-1")
    assert not [text for text in played.texts("outcome") if text.startswith("v-1")], "nobody saw what happens without"


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([say("resolve", "gorw")], "Not done: there is no resolver 'gorw'; there are: grow"),
        ([say("pause"), say("resolve", "grow")], "Not done: kill switch: paused by Ada: because"),
        ([say("approve", "v-9")], "Not done: v-9 is not advised now"),
        ([say("approve")], "Not done: nothing is not advised now"),
        ([say("pause"), say("approve", "v-1")], "Not done: kill switch: paused by Ada: because"),
        ([say("revert")], "Not done: there is no action to take back now"),
        ([say("revert", "a-7")], "Not done: a-7 is not the last action that took effect: only that can be taken back"),
    ],
)
def test_what_cannot_be_done_is_answered(events: list[Operator], why: str) -> None:
    played = play(policy(), ENGINE, SEEN[:5], mode="advise", extra={3: events})
    assert played.commands == ()
    assert played.texts("rejection")[0] == why


def test_a_second_approval_waits_for_the_first_action() -> None:
    advised = play(policy(), ENGINE, SEEN[:2], mode="advise").state
    twice = replace(advised, advised={**advised.advised, "v-2": advised.advised["v-1"]})
    said = [say("approve", "v-1"), say("approve", "v-2")]
    _, commands, trace = step(policy(), twice, said, 25.0)
    assert len(commands) == 1
    assert "Not done: one action in flight: a-1 is under way" in [record.text for record in trace.records]


def test_a_person_takes_back_what_is_being_judged() -> None:
    played = play(policy(), ENGINE, SEEN[:4], extra={2: [say("revert", "a-1")]})
    assert played.texts("action") == ["grow: parallelism.split = 3", "revert: parallelism.split = 2"]
    assert played.texts("outcome") == ["a-1 was not judged: a person took it back before it was judged"]
    assert played.state.observed[SPLIT] == 2
    assert played.state.memory == (), "it proves nothing about the action"


def test_a_person_takes_back_the_last_action_after_it_was_judged() -> None:
    played = play(policy(Trouble(until_s=50.0)), ENGINE, SEEN[:14], extra={10: [say("revert")]})
    assert played.texts("action") == ["grow: parallelism.split = 3", "revert: parallelism.split = 2"]
    assert played.texts("outcome")[0] == "a-1 helped"
    assert played.state.observed[SPLIT] == 2


def test_a_replaced_worker_does_not_come_back() -> None:
    class Swap:
        name = "swap"

        def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
            patch = Patch(retire=frozenset({"split-1"}))
            return [Proposal(REPLACE, (CAUSE,), patch, "split", Prediction(0.5), reversible=False)]

    swapping = replace(policy(), resolvers=(Swap(),))
    played = play(swapping, ENGINE, SEEN[:4], extra={2: [say("revert")]})
    assert played.texts("action") == ["replace: replace split-1"]
    assert "Not done: a-1 replaced workers: they do not come back" in played.texts("rejection")


class Warn:
    name = "warn"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        return [Proposal(ALERT, (d,), component=d.component, message="look here") for d in diagnoses]


@pytest.mark.parametrize("mode", ["observe", "advise", "regulate"])
def test_a_person_is_told_once_and_again_only_after_the_trouble_was_over(mode: Mode) -> None:
    warning = replace(policy(Trouble(pauses_s=((100.0, 120.0),))), resolvers=(Warn(),))
    played = play(warning, ENGINE, SEEN, mode=mode)
    told = [command for command in played.commands if isinstance(command, Notify)]
    assert [(notify.at_s, notify.message) for notify in told] == [(10.0, "look here"), (120.0, "look here")]


def test_a_refusal_is_logged_once_for_each_kind_of_reason() -> None:
    played = run("regulate", most=9)
    assert len(played.actions) == 7
    reasons = [text.split(":")[1] for text in played.texts("rejection")]
    assert reasons == [" one action in flight", " cool-down"] * 6 + reasons[12:]
    assert len(reasons) <= 14, "60 measurements, and two reasons for waiting after each action"
    assert len(played.texts("proposal")) <= len(reasons) + len(played.actions)


def test_an_unsure_proposal_is_not_written_down_anew_whenever_its_probability_changes() -> None:
    class Wavering:
        name = "wavering"

        def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
            return [Diagnosis("cause", "split", 0.3 + view.now_s / 10_000.0)]

    played = play(replace(policy(), diagnosers=(Wavering(),)), ENGINE, SEEN[:20])
    assert len(played.texts("rejection")) == 1


def test_an_observation_that_comes_twice_counts_once() -> None:
    state, _, _ = step(policy(), State(mode="observe", objective=Objective()), [Observed(SEEN[0])] * 3, 10.0)
    assert len(state.history) == 1
    state, _, trace = step(policy(), state, [Observed(SEEN[0])], 20.0)
    assert len(state.history) == 1
    assert trace.conditions == ("no new observation",)
