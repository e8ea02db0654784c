"""What was survived, how soon, and what nobody had asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from homeostat.lab.chaos.log_watch import LoggedAction
from homeostat.lab.chaos.tally import ANSWER_S, Trial, summary, unasked_actions

CAUSES = {"driver-killed": frozenset({"under-provisioned"}), "rest-garbage": frozenset[str]()}
NO_HARM: dict[str, Any] = {"lost": 0, "doubled": 0, "leftovers": []}


def action(seen_s: float, cause: str, *, ordered: bool = False) -> LoggedAction:
    return LoggedAction(seen_s, "a-1", "scale-up", cause, "from 2 to 4 executors", ordered)


def test_an_action_is_asked_for_by_an_order_or_by_a_fault_that_explains_it() -> None:
    trials = [Trial("driver-killed", 100.0, "", 20.0, over_s=120.0)]
    answers = [action(130.0, "under-provisioned"), action(130.0, "", ordered=True)]
    assert unasked_actions(answers, trials, CAUSES) == []


def test_an_action_is_unasked_for_if_no_fault_explains_it() -> None:
    killed = Trial("driver-killed", 100.0, "", 20.0, over_s=120.0)
    trials = [killed, Trial("rest-garbage", 900.0, "", 2.0, over_s=902.0)]
    too_early = action(99.0, "under-provisioned")
    too_late = action(121.0 + ANSWER_S, "under-provisioned")
    other = action(130.0, "over-provisioned")
    wrong_remedy = replace(action(130.0, "under-provisioned"), action_kind="replace")
    of_garbage = action(905.0, "slow-instance")
    actions = [too_early, too_late, other, wrong_remedy, of_garbage]
    assert unasked_actions(actions, trials, CAUSES) == actions


def test_times_to_recover_are_of_the_faults_that_were_survived() -> None:
    trials = [
        Trial("driver-killed", 1.0, "", 20.0),
        Trial("driver-killed", 100.0, "", 40.0, exits=1),
        Trial("driver-killed", 200.0, "", 90.0, seen="not refused"),
        Trial("driver-killed", 300.0, "killed 7", None, seen="the master is not running"),
    ]
    result = summary(trials, [], CAUSES, **NO_HARM)
    assert result["kinds"]["driver-killed"] == {
        "injected": 4,
        "survived": 2,
        "recover_s": {"median": 30.0, "max": 40.0},
        "restarts_of_the_command": 1,
    }
    assert (result["injected"], result["survived"], result["accepted"]) == (4, 2, False)
    assert [failure["seen"] for failure in result["failures"]] == ["not refused", "the master is not running"]


def test_only_a_run_without_any_harm_is_accepted() -> None:
    trials = [Trial("rest-garbage", 1.0, "", 2.0)]
    assert summary(trials, [], CAUSES, **NO_HARM)["accepted"]
    assert not summary([], [], CAUSES, **NO_HARM)["accepted"]
    for harm in ({"lost": 1}, {"doubled": 1}, {"leftovers": ["7 executor"]}):
        assert not summary(trials, [], CAUSES, **{**NO_HARM, **harm})["accepted"]
    unasked = summary(trials, [action(3.0, "slow-instance")], CAUSES, **NO_HARM)
    assert not unasked["accepted"]
    (listed,) = unasked["unasked_actions"]
    assert (listed["cause"], listed["after"], listed["seconds_after"]) == ("slow-instance", "rest-garbage", 2.0)
