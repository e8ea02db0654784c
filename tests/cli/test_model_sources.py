"""Where `whatif` and `plan` learn their model from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.paths import RECORDED as LOGS

Homeostat = Callable[..., Any]


RECORDED = LOGS / "wordcount.jsonl"


@pytest.mark.slow
def test_the_log_of_a_run_can_be_asked(homeostat: Homeostat) -> None:
    assert homeostat("sim", "run", "E7", "--store", "e7.sqlite").code == 0
    result = homeostat("whatif", "--store", "e7.sqlite", "--set", "parallelism.count=10", "--json")
    assert result.code == 3
    assert result.json["then"]["utilisation"]["count"] > 1
    assert "assumed to stay constant" in homeostat("plan", "--store", "e7.sqlite").out
    planned = homeostat("plan", "--store", "e7.sqlite", "--rate", "500k/min", "--json").json
    assert 5 <= planned["best"]["configuration"]["parallelism.flatmap"] <= 6
    assert 10 <= planned["best"]["configuration"]["parallelism.count"] <= 11


def test_sparks_event_log_can_be_asked(homeostat: Homeostat) -> None:
    result = homeostat("whatif", "--event-log", RECORDED, "--executors", 4, "--json")
    assert result.code in (0, 3)
    assert result.json["then"]["batch_s"]["p50"] > 0
    assert result.json["then"]["configuration"]["executors.app"] == 4


def test_a_run_without_a_model_says_so(homeostat: Homeostat) -> None:
    assert homeostat("whatif").code == 2
