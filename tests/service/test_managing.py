"""Which policy an application gets that names none."""

from __future__ import annotations

import pytest

from homeostat import config
from homeostat.core.objective import Objective
from homeostat.service.managing import policy_name


@pytest.mark.parametrize(
    ("objective", "name"),
    [
        (Objective(), "provisioning"),
        (Objective(cost_limit=4.0), "provisioning"),
        (Objective(throughput_per_s=5_000.0), "throughput"),
        (Objective(latency_p95_s=10.0), "latency"),
        (Objective(lag_s=30.0), "latency"),
        (Objective(throughput_per_s=5_000.0, latency_p95_s=10.0, cost_limit=4.0), "latency"),
    ],
)
def test_the_policy_holds_all_that_is_asked_for(objective: Objective, name: str) -> None:
    assert policy_name(config.load(environ={}), objective) == name


def test_a_policy_that_was_named_is_taken() -> None:
    named = config.load(environ={}, flags={"policy": "hpa"})
    assert policy_name(named, Objective(latency_p95_s=10.0)) == "hpa"
