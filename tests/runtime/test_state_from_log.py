"""What the records say about the state of a run."""

from __future__ import annotations

from homeostat.core.actions import REVERT
from homeostat.core.calibration import JudgedCause
from homeostat.core.records import ActionContent, OperatorContent, OutcomeContent, Record
from homeostat.runtime.state_from_log import judged_in_log, numbers_in_log, pause_in_log
from homeostat.store.in_memory import MemoryStore


def test_the_last_number_of_each_letter() -> None:
    store = MemoryStore()
    ids = (("a-2", "action"), ("a-10", "action"), ("s-3", "symptom"), ("e-7", "symptom"), ("a-2.receipt", "receipt"))
    store.append("run", [Record(id, kind, 1.0, "") for id, kind in (*ids, ("b-9", "batch"))])
    assert numbers_in_log(store, "run") == {"a": 10, "s": 3, "e": 7}
    assert numbers_in_log(store, "other") == {}


def test_the_last_pause_or_resume_counts() -> None:
    store = MemoryStore()
    assert pause_in_log(store, "run") == ""
    for number, command in enumerate(("pause", "resume", "pause", "revert")):
        content = OperatorContent(command, "Ada", "holiday")
        store.append("run", [Record.of(f"o-{number}", float(number), content, "")])
    assert pause_in_log(store, "run") == "paused by Ada: holiday"
    store.append("run", [Record.of("o-9", 9.0, OperatorContent("resume", "Ada"), "")])
    assert pause_in_log(store, "run") == ""


def test_judged_causes_are_counted_again_from_actions_and_their_outcomes() -> None:
    store = MemoryStore()
    for number, (kind, verdict) in enumerate(
        [("scale-up", "helped"), ("scale-up", "failed"), (REVERT, "helped"), ("scale-up", "confounded")]
    ):
        action = ActionContent(action_kind=kind, cause="under-provisioned", probability=0.9)
        outcome = OutcomeContent(f"a-{number}", verdict)
        store.append("run", [Record.of(f"a-{number}", 1.0, action, ""), Record.of(f"u-{number}", 2.0, outcome, "")])
    assert judged_in_log(store, "run") == {"under-provisioned": (JudgedCause(0.9, True), JudgedCause(0.9, False))}
