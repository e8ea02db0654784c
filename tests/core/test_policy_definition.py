"""A policy bundles plug-ins; without any it watches and does nothing."""

from __future__ import annotations

from homeostat.core.guards import DEFAULT_GUARDS
from homeostat.core.policy_definition import Policy
from homeostat.testing import instances, observations, play, view_of


def test_a_policy_without_plug_ins_does_nothing() -> None:
    observed = observations(5, {"lines": instances(10.0, 1.0)}, arrival_per_s=1.0)

    played = play(Policy("quiet"), view_of(observed), observed)

    assert played.commands == ()
    assert {record.kind for record in played.records} == {"engine"}


def test_the_guards_are_there_unless_they_are_taken_away() -> None:
    assert Policy("quiet").guards == DEFAULT_GUARDS


def test_a_cadence_holds_the_next_cycle_back() -> None:
    observed = observations(9, {"lines": instances(10.0, 1.0)}, arrival_per_s=1.0)

    state = play(Policy("slow", cadence_s=40.0), view_of(observed), observed).state

    assert state.last_cycle_s == 90.0
    assert play(Policy("slow", cadence_s=60.0), view_of(observed), observed).state.last_cycle_s == 70.0
