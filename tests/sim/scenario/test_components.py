"""Components become a topology, or are refused with the way to fix them."""

from __future__ import annotations

import pytest

from homeostat.core.configuration import PARALLELISM, Knob
from homeostat.core.errors import ConfigError
from homeostat.sim.scenario.components import topology
from homeostat.sim.scenario.spec import ComponentSpec


def by_name(spec: ComponentSpec) -> Knob:
    return Knob(PARALLELISM, spec.name)


def test_inputs_become_edges() -> None:
    shape = topology((ComponentSpec("a", "source"), ComponentSpec("b", inputs=("a",))), by_name)
    assert shape.names == ("a", "b")
    assert [component.name for component in shape.sources] == ["a"]


def test_a_topology_needs_a_source() -> None:
    with pytest.raises(ConfigError) as refused:
        topology((), by_name)
    assert refused.value.line == 'components: no component is a source (set kind = "source" for one component)'
