"""The kinds of action."""

from __future__ import annotations

from homeostat.core import actions, causes

KINDS = {value for name, value in vars(actions).items() if name.isupper()}


def test_every_cause_that_ships_is_mended_by_an_action_that_exists() -> None:
    shipped = [cause for cause in causes.declared_causes() if cause.name in vars(causes).values()]
    assert {kind for cause in shipped for kind in cause.mended_by} <= KINDS


def test_every_kind_has_a_name_of_its_own() -> None:
    assert len(KINDS) == sum(name.isupper() for name in vars(actions))
