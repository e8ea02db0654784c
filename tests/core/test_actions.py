"""The kinds of action."""

from __future__ import annotations

from homeostat.core import actions
from homeostat.core.causes import declared

KINDS = {value for name, value in vars(actions).items() if name.isupper()}


def test_every_cause_is_mended_by_an_action_that_exists() -> None:
    assert {kind for cause in declared() for kind in cause.mended_by} <= KINDS


def test_every_kind_has_a_name_of_its_own() -> None:
    assert len(KINDS) == sum(name.isupper() for name in vars(actions))
