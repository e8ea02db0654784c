"""`homeostat bench preempt` runs every kind of spike with every seed, and says how acting ahead compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from homeostat.lab.bench import preempt

Homeostat = Callable[..., Any]


def test_every_kind_of_spike_gets_every_seed(homeostat: Homeostat, monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[preempt.Case] = []
    run = {"violation_s": 120.0, "executor_hours": 50.0, "actions": 9, "ahead": 2, "least_executor_hours": 40.0}

    def measure(given: Sequence[preempt.Case], **_: object) -> dict[str, Any]:
        cases.extend(given)
        runs = {name: [run] for name in (preempt.AHEAD, preempt.REACTIVE)}
        return {"seeds": [4, 5], "cases": {"spikes that move": preempt.verdict_json(runs, steady=False)}}

    monkeypatch.setattr(preempt, "measure", measure)
    result = homeostat("bench", "preempt", "--seed", "4", "--seeds", "2")
    assert result.code == 0
    assert [(case.name, case.seed) for case in cases] == [
        (each.name, seed) for each in preempt.SPIKES for seed in (4, 5)
    ]
    assert result.out.splitlines()[-1].endswith("+0 s a run (+0 to +0); accepted")
    assert "120" in result.out
