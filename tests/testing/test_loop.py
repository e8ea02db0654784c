"""A policy can be played on made-up measurements."""

from __future__ import annotations

from homeostat.core.configuration import PARALLELISM, Knob
from homeostat.core.policy_definition import Policy
from homeostat.testing import instances, observations, play, view_of

TASKS = {"lines": instances(100.0, 1.0), "count": instances([60.0, 40.0], [6.0, 4.0], pending_rows=[5.0, 0.0])}


def test_a_policy_can_be_played() -> None:
    view = view_of(observations(3, TASKS, arrival_per_s=10.0), values={Knob(PARALLELISM, "count"): 2})
    played = play(Policy("nothing"), view, view.window.observations)
    assert played.commands == ()
    assert [record.kind for record in played.records] == ["engine"]
    assert len(played.state.history) == 3
