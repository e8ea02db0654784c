"""The shape of an application."""

from __future__ import annotations

import pytest

from homeostat.core.configuration import PARALLELISM, Knob
from homeostat.core.errors import ConfigError
from homeostat.core.topology import Component, Topology


def operator(name: str, *inputs: str) -> Component:
    return Component(name, "operator" if inputs else "source", Knob(PARALLELISM, name), inputs)


def test_depth_is_the_longest_way_from_a_source() -> None:
    shape = Topology(
        (operator("a"), operator("b"), operator("c", "a"), operator("d", "a", "c"), operator("e", "b", "d"))
    )
    assert shape.depth == {"a": 0, "b": 0, "c": 1, "d": 2, "e": 3}
    assert [c.name for c in shape.sources] == ["a", "b"]
    assert [c.name for c in shape.downstream("a")] == ["c", "d"]
    assert "c" in shape
    assert "z" not in shape


def test_what_nobody_provides_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match="'b' reads 'c', which no earlier component provides"):
        Topology((operator("a"), operator("b", "c"), operator("c", "b")))


def test_a_component_is_defined_once() -> None:
    with pytest.raises(ConfigError, match="'a' is defined twice"):
        Topology((operator("a"), operator("a")))
