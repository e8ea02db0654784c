"""Only a fault that an action fixes asks for it, and only while it is active or its rows still wait."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from homeostat.core.causes import cause_of
from homeostat.lab.bench.chaos import FAULTS
from homeostat.lab.chaos.answers import ANSWERS, BACKLOG_LIMIT_S, objection
from homeostat.lab.chaos.log_watch import Change, LoggedAction
from homeostat.lab.chaos.trial import Trial

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "commands.md"
MORE = Change("scale-up", "under-provisioned")
KILLED = Trial("driver-killed", 100.0, "", 20.0, over_s=120.0)
STOPPED = Trial("executor-stopped", 100.0, "", 20.0, over_s=120.0, executor="1")
GARBAGE = Trial("rest-garbage", 130.0, "", 2.0, over_s=135.0)


def action(
    seen_s: float, *changes: Change, behind_since_s: float = float("inf"), ordered: bool = False
) -> LoggedAction:
    kind = changes[0].action_kind if len(changes) == 1 else "plan"
    return LoggedAction(seen_s, "a-1", kind, "", ordered, changes, behind_since_s=behind_since_s)


def test_every_kind_of_fault_has_its_line_and_every_answer_fixes_its_cause() -> None:
    assert set(ANSWERS) == {kind.name for kind in FAULTS}
    for answer in (each for answers in ANSWERS.values() for each in answers):
        assert set(answer.actions) <= set(cause_of(answer.cause).mended_by)


def test_the_page_has_the_same_table() -> None:
    section = PAGE.read_text().partition("\n## homeostat bench chaos\n")[2].partition("\n## ")[0]
    on_page: dict[str, set[tuple[str, str]]] = {name: set() for name in ANSWERS}
    for line in re.findall(r"^\| (`.*) \|$", section.partition("| Fault |")[2].partition("\n\n")[0], re.MULTILINE):
        faults, actions, cause = (re.findall(r"`([\w-]+)`", cell) for cell in line.split(" | "))
        for name in faults:
            on_page[name] |= {(each, cause[0]) for each in actions}
    assert on_page == {
        name: {(each, answer.cause) for answer in answers for each in answer.actions}
        for name, answers in ANSWERS.items()
    }


@pytest.mark.parametrize(
    "logged_action",
    [
        action(100.0, MORE),
        action(120.0, MORE),
        action(125.0, MORE, behind_since_s=119.0),
        action(500.0, Change("by-hand", ""), ordered=True),
    ],
    ids=["at its beginning", "until it is over", "while its rows wait", "ordered"],
)
def test_an_action_that_was_asked_for(logged_action: LoggedAction) -> None:
    assert objection(logged_action, [KILLED, GARBAGE]) == ""


@pytest.mark.parametrize(
    ("unasked", "why"),
    [
        (action(99.0, MORE), "no fault had been injected"),
        (action(125.0, MORE), "no fault was active: driver-killed ended 5 s earlier, and its backlog was processed"),
        (action(125.0, MORE, behind_since_s=121.0), "no fault was active"),
        (action(132.0, MORE), "rest-garbage justifies no action, but this is scale-up against under-provisioned"),
        (
            action(110.0, Change("replace", "under-provisioned")),
            "driver-killed justifies scale-up or retune or scale-source against under-provisioned, but this is replace",
        ),
        (action(110.0, Change("scale-up", "driver-bound")), "but this is scale-up against driver-bound"),
        (action(110.0, MORE, Change("retune", "driver-bound")), "but this is retune against driver-bound"),
        (action(110.0, Change("revert", "under-provisioned")), "reverting an action fixes no fault"),
    ],
)
def test_an_action_that_was_not_asked_for_says_why(unasked: LoggedAction, why: str) -> None:
    assert why in objection(unasked, [KILLED, GARBAGE])


def test_a_backlog_that_stays_is_not_that_of_the_fault() -> None:
    prompt_action, late_action = (
        action(119.0 + BACKLOG_LIMIT_S + more_s, MORE, behind_since_s=119.0) for more_s in (1.0, 2.0)
    )
    assert objection(prompt_action, [KILLED]) == ""
    assert "no fault was active" in objection(late_action, [KILLED])


def test_only_the_executor_that_was_stopped_may_be_replaced() -> None:
    replaced = action(110.0, Change("replace", "slow-instance", ("1",)))
    assert objection(replaced, [STOPPED]) == ""
    other = replace(replaced, changes=(Change("replace", "slow-instance", ("0",)),))
    assert "against slow-instance of executor 1" in objection(other, [STOPPED])
    assert "but this is replace against slow-instance of executor 0" in objection(other, [STOPPED])
