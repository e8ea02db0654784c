"""The remedies of a plan, in its record."""

from __future__ import annotations

from homeostat.core.change_parts import PartContent, PartOutcomeContent, PredictionContent
from homeostat.core.records import ActionContent, OutcomeContent, content_of


def test_the_parts_of_a_plan_are_read_as_they_were_written() -> None:
    part = PartContent("replace", "slow-instance", "count", {}, ("e-1",), PredictionContent(0.5, ("count",), "as fast"))
    action = content_of("action", ActionContent("plan", parts=(part,), left_out=("Without it: not now",)).to_json())
    assert isinstance(action, ActionContent)
    assert (action.parts, action.left_out) == ((part,), ("Without it: not now",))
    verdict = PartOutcomeContent("replace", "slow-instance", "count", "helped")
    outcome = content_of("outcome", OutcomeContent("a-1", "helped", parts=(verdict,)).to_json())
    assert isinstance(outcome, OutcomeContent)
    assert outcome.parts == (verdict,)


def test_a_log_of_before_there_were_plans_is_read_without_parts() -> None:
    action = content_of("action", {"v": 2, "kind": "scale-up", "patch": {"executors.app": 3}})
    assert isinstance(action, ActionContent)
    assert (action.parts, action.left_out) == ((), ())
