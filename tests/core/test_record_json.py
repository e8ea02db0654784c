"""Typed values as JSON: what is written, and what is made of nonsense."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from homeostat.core.record_json import JSON, from_json, json_field, to_json


@dataclass(frozen=True, slots=True)
class Sample:
    rows: float
    name: str = "count"
    kind_of_thing: str = json_field("kind", "")
    tags: tuple[str, ...] = ()
    extra: dict[str, JSON] = field(default_factory=dict)


def test_required_fields_are_always_written_and_others_where_they_differ() -> None:
    assert to_json(Sample(math.nan), 2) == {"v": 2, "rows": None}
    assert to_json(Sample(1.0, kind_of_thing="scan", tags=("a",)), 2) == {
        "v": 2,
        "rows": 1.0,
        "kind": "scan",
        "tags": ["a"],
    }


def test_a_value_of_the_wrong_type_becomes_the_default() -> None:
    sample = from_json(Sample, {"rows": "many", "name": 5, "kind": None, "tags": ["a", 1, "b"]})
    assert math.isnan(sample.rows)
    assert (sample.name, sample.kind_of_thing, sample.tags) == ("count", "", ("a", "b"))


def test_keys_that_are_not_declared_are_kept() -> None:
    sample = from_json(Sample, {"rows": 1, "colour": "red", "v": 7})
    assert sample.extra == {"colour": "red"}
    assert to_json(sample, 2)["colour"] == "red"
