"""The loop decides as version 0.1.0 did: every shipped scenario, under every policy and peer, with two seeds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.reference_runs import recorded, trajectory

# `make test` compares the short scenarios under every policy, and the long ones under ours; `make soak` compares all.
# A simulated day takes a minute or two of one core.
DAYS = ("E4", "E4-microbatch")
LONG = ("E1", "E2", "E5", "E1-microbatch", "E6-microbatch")
OURS = ("provisioning",)
QUICK = [("E1", "provisioning", 1), ("E3", "provisioning.paper", 1), ("E6-microbatch", "provisioning", 1)]


def _cases() -> list[Any]:
    cases = []
    for line in recorded():
        name = (line["scenario"], line["policy"], line["seed"])
        marks = []
        too_long = line["scenario"] in LONG and line["policy"] not in OURS
        if line["scenario"] in DAYS or too_long or line["seed"] == 2:
            marks = [pytest.mark.soak]
        elif name not in QUICK:
            marks = [pytest.mark.slow]
        cases.append(pytest.param(line, id="-".join(map(str, name)), marks=marks))
    return cases


@pytest.mark.parametrize("reference", _cases())
def test_the_run_is_the_recorded_one(reference: dict[str, Any]) -> None:
    now = trajectory(reference["scenario"], reference["policy"], reference["seed"])
    if "refused" in reference:
        assert now.get("refused")
        return
    for part in now:
        # Unknown numbers are NaN, which equals nothing: the texts are compared.
        assert json.dumps(now[part], sort_keys=True) == json.dumps(reference[part], sort_keys=True), part
