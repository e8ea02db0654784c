"""`homeostat bench models` says which conditions do not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from homeostat.lab.bench import models

Homeostat = Callable[..., Any]


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        ({"batch": True, "coverage": True}, "simulator: accepted"),
        ({"batch": True, "coverage": False, "catch_up": False}, "not accepted because of coverage, catch up"),
    ],
)
def test_what_is_missed_is_named(
    homeostat: Homeostat, monkeypatch: pytest.MonkeyPatch, holds: dict[str, bool], verdict: str
) -> None:
    figures = {"configurations": [], "coverage": 0.47, "holds": holds}
    monkeypatch.setattr(models, "measure", lambda **_: {"simulator": figures})
    result = homeostat("bench", "models", "--side", "simulator")
    assert result.code == 0
    assert result.out.splitlines()[-1].endswith(verdict)
    assert "47.0%" in result.out
