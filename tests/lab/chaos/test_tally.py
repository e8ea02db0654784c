"""What was survived, how soon, and what nobody had asked for."""

from __future__ import annotations

from typing import Any

from homeostat.lab.chaos.log_watch import Change, LoggedAction
from homeostat.lab.chaos.tally import so_far, summary
from homeostat.lab.chaos.trial import Trial
from homeostat.lab.row_ledger import RowDifferences

NO_HARM: dict[str, Any] = {"differences": RowDifferences(100), "leftovers": []}


def replacement(seen_s: float) -> LoggedAction:
    changes = (Change("replace", "slow-instance", ("0",)),)
    return LoggedAction(seen_s, "a-1", "replace", "replace executor 0", False, changes)


def test_times_to_recover_are_of_the_faults_that_were_survived() -> None:
    trials = [
        Trial("driver-killed", 1.0, "", 20.0),
        Trial("driver-killed", 100.0, "", 40.0, exits=1),
        Trial("driver-killed", 200.0, "", 90.0, problem="not refused"),
        Trial("driver-killed", 300.0, "killed 7", None, problem="the master is not running"),
    ]
    result = summary(trials, [], **NO_HARM)
    assert result["kinds"]["driver-killed"] == {
        "injected": 4,
        "survived": 2,
        "recover_s": {"median": 30.0, "max": 40.0},
        "restarts_of_the_command": 1,
    }
    assert (result["injected"], result["survived"], result["accepted"]) == (4, 2, False)
    assert [failure["seen"] for failure in result["failures"]] == ["not refused", "the master is not running"]


def test_only_a_run_without_any_harm_is_accepted() -> None:
    trials = [Trial("rest-garbage", 1.0, "", 2.0, over_s=4.0)]
    assert summary(trials, [], **NO_HARM)["accepted"]
    assert not summary([], [], **NO_HARM)["accepted"]
    for harm in (
        {"differences": RowDifferences(100, lost=1)},
        {"differences": RowDifferences(100, doubled=1)},
        {"differences": RowDifferences(100, misplaced=1)},
        {"leftovers": ["7 executor"]},
        {"leftovers": None},
    ):
        assert not summary(trials, [], **{**NO_HARM, **harm})["accepted"]
    unasked = summary(trials, [replacement(3.0)], **NO_HARM)
    assert not unasked["accepted"]
    (listed,) = unasked["unasked_actions"]
    assert (listed["causes"], listed["retire"]) == (["slow-instance"], ["0"])
    assert (listed["after"], listed["seconds_after"]) == ("rest-garbage", 2.0)
    assert listed["why"].startswith("rest-garbage justifies no action")


def test_a_fault_that_was_cut_off_only_accounts_for_actions() -> None:
    trials = [Trial("rest-garbage", 1.0, "", 2.0, over_s=4.0)]
    cut_off = Trial("executor-stopped", 5.0, "", None, over_s=float("inf"), executor="0")
    result = summary(trials, [replacement(6.0)], **NO_HARM, cut_off=[cut_off])
    assert result["accepted"]
    assert (result["injected"], result["survived"], result["cut_off"]) == (1, 1, ["executor-stopped"])


def test_the_result_so_far_is_one_line() -> None:
    trials = [Trial("rest-garbage", 1.0, "", 2.0, over_s=4.0), Trial("driver-killed", 5.0, "", None, over_s=9.0)]
    line = so_far(trials, [replacement(3.0)], RowDifferences(34_120, 1, 2, 3))
    assert line == "so far: survived 1 of 2; 34,120 rows, 1 lost, 2 duplicated, 3 misplaced; 1 unexpected actions"
