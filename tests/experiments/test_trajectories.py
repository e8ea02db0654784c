"""The loop decides as it did when it was recorded: short scenarios under every policy, long ones under ours."""

from __future__ import annotations

from typing import Any

import pytest

from support.reference_runs import differences, reference_lines, trajectory

# `make test` compares our policy on the short scenarios, `make check` two of them; `make soak` compares all runs.
SHORT = ("E3", "E7", "E8", "E9", "demo")
QUICK = [("E3", "provisioning.paper", 1), ("E7", "provisioning", 1)]


def _cases() -> list[Any]:
    cases = []
    for line in reference_lines():
        name = (line["scenario"], line["policy"], line["seed"])
        ours = (line["policy"], line["seed"]) == ("provisioning", 1)
        marks = [] if name in QUICK else [pytest.mark.slow if ours and line["scenario"] in SHORT else pytest.mark.soak]
        cases.append(pytest.param(line, id="-".join(map(str, name)), marks=marks))
    return cases


@pytest.mark.parametrize("reference", _cases())
def test_the_run_is_the_recorded_one(reference: dict[str, Any]) -> None:
    now = trajectory(reference["scenario"], reference["policy"], reference["seed"])
    if "refused" in reference:
        assert now.get("refused")
        return
    assert not differences(now, reference)
