"""Which components a fault hits."""

from __future__ import annotations

import pytest

from homeostat.sim.scenario.fault_targets import concerns
from homeostat.sim.scenario.spec import FaultKind, FaultSpec
from support.troubled_runs import SCENARIO


@pytest.mark.parametrize(
    ("kind", "component", "names"),
    [
        ("slow-fetch", "", ["lines"]),
        ("slow-network", "", ["count"]),
        ("state-store", "", ["count"]),
        ("memory", "", ["lines", "count"]),
        ("memory", "count", ["count"]),
    ],
)
def test_a_fault_without_a_component_hits_those_that_it_can(kind: FaultKind, component: str, names: list[str]) -> None:
    fault = FaultSpec(kind, component=component)
    assert [spec.name for spec in SCENARIO.components if concerns(fault, spec)] == names
