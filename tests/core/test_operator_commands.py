"""Commands by people: pause, resume, approve, revert, apply, resolve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from homeostat.core.actions import REPLACE
from homeostat.core.configuration import Patch
from homeostat.core.cycle import step
from homeostat.core.events import Operator
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.view import View
from homeostat.testing import play
from support.growing_loop import CAUSE, ENGINE, OBSERVED, SPLIT, Trouble, policy


def say(command: str, target: str = "") -> Operator:
    return Operator(command, "Ada", "because", target)  # type: ignore[arg-type]


def test_a_paused_loop_sees_but_does_nothing_until_it_is_resumed() -> None:
    played = play(policy(), ENGINE, OBSERVED, extra={0: [say("pause")], 5: [say("resume")]})
    assert played.actions[0].at_s == 60.0
    assert played.texts("operator") == ["Ada: pause (because)", "Ada: resume (because)"]
    assert played.texts("rejection")[0] == "Waiting: kill switch: paused by Ada: because"


def test_a_paused_loop_does_not_even_take_back_what_did_harm() -> None:
    played = play(policy(verdict="harmful"), ENGINE, OBSERVED[:10], extra={2: [say("pause")]})
    assert played.texts("action") == ["grow: parallelism.split = 3"]
    assert "Waiting: a-1 is not reverted: paused by Ada: because" in played.texts("rejection")
    free = play(policy(verdict="harmful"), ENGINE, OBSERVED[:10])
    assert free.texts("action") == ["grow: parallelism.split = 3", "revert: parallelism.split = 2"]


def test_approved_advice_becomes_an_action_and_is_scored_no_more() -> None:
    played = play(policy(), ENGINE, OBSERVED[:20], mode="advise", extra={3: [say("approve", "v-1")]})
    assert [action.at_s for action in played.actions] == [40.0]
    action = next(record for record in played.records if record.kind == "action")
    assert action.because[0] == "v-1"
    assert not [text for text in played.texts("outcome") if text.startswith("v-1")]


def test_a_resolver_is_run_by_hand_against_the_diagnoses_that_stand() -> None:
    played = play(policy(), ENGINE, OBSERVED[:20], mode="advise", extra={3: [say("resolve", "grow")]})
    assert [action.at_s for action in played.actions] == [40.0]
    action = next(record for record in played.records if record.kind == "action")
    assert action.text == "grow: parallelism.split = 3"
    assert action.because == ("o-1", "d-1")
    assert not [text for text in played.texts("outcome") if text.startswith("v-1")], "nobody saw what happens without"


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([say("resolve", "gorw")], "Not done: there is no resolver 'gorw'; available: grow"),
        ([say("pause"), say("resolve", "grow")], "Not done: kill switch: paused by Ada: because"),
        ([say("approve", "v-9")], "Not done: v-9 is not current advice"),
        ([say("approve")], "Not done: nothing is not current advice"),
        ([say("pause"), say("approve", "v-1")], "Not done: kill switch: paused by Ada: because"),
        ([say("revert")], "Not done: there is no action to revert"),
        (
            [say("revert", "a-7")],
            "Not done: only the last action that took effect can be reverted, and that is not a-7",
        ),
    ],
)
def test_what_cannot_be_done_is_answered(events: list[Operator], why: str) -> None:
    played = play(policy(), ENGINE, OBSERVED[:5], mode="advise", extra={3: events})
    assert played.commands == ()
    assert played.texts("rejection")[0] == why


def test_a_second_approval_waits_for_the_first_action() -> None:
    advised = play(policy(), ENGINE, OBSERVED[:2], mode="advise").state
    twice = replace(advised, advised={**advised.advised, "v-2": advised.advised["v-1"]})
    approvals = [say("approve", "v-1"), say("approve", "v-2")]
    _, commands, trace = step(policy(), twice, approvals, 25.0)
    assert len(commands) == 1
    assert "Not done: one action in flight: a-1 is under way" in [record.text for record in trace.records]


def test_a_person_takes_back_what_is_being_judged() -> None:
    played = play(policy(), ENGINE, OBSERVED[:4], extra={2: [say("revert", "a-1")]})
    assert played.texts("action") == ["grow: parallelism.split = 3", "revert: parallelism.split = 2"]
    assert played.texts("outcome") == ["a-1 was not judged: a person reverted it before it was judged"]
    assert played.state.observed[SPLIT] == 2
    assert played.state.memory == (), "it proves nothing about the action"


def test_a_person_takes_back_the_last_action_after_it_was_judged() -> None:
    played = play(policy(Trouble(until_s=50.0)), ENGINE, OBSERVED[:14], extra={10: [say("revert")]})
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
    played = play(swapping, ENGINE, OBSERVED[:4], extra={2: [say("revert")]})
    assert played.texts("action") == ["replace: replace split-1"]
    assert "Not done: a-1 replaced workers, which cannot be reverted" in played.texts("rejection")
