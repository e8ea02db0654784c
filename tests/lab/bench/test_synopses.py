"""Synopses keep to what they state: their error, and their memory however many keys they see."""

from __future__ import annotations

from typing import Any

import pytest

from homeostat.lab.bench import synopses


def check(result: dict[str, Any]) -> None:
    for name, figures in result["synopses"].items():
        assert figures["within"], (name, figures)
        assert 0 < figures["bytes"] <= figures["stated_bytes"], name
        assert figures["error"] <= figures["stated_error"], name
    assert result["synopses"]["heavy_hitters"]["missed"] == 0


def test_at_two_hundred_thousand_keys() -> None:
    lines: list[str] = []
    result = synopses.measure(keys=200_000, tell=lines.append)
    check(result)
    assert set(result["synopses"]) == {"distinct", "quantiles", "heavy_hitters"}
    assert len(lines) == 3
    exact = [name for name, figures in result["synopses"].items() if figures["error"] == 0]
    assert not exact, "nothing was summed up"


@pytest.mark.soak
def test_at_ten_million_keys() -> None:
    check(synopses.measure(keys=synopses.KEYS, tell=print))
