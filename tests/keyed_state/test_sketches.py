"""What sketches answer: exact for few items, and nothing added by None or an empty string."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import homeostat as hs
from homeostat.keyed_state.synopses import Synopsis

EVERY: tuple[Synopsis[Any], ...] = (hs.Distinct(), hs.Quantiles(), hs.HeavyHitters(int))


def part_of(synopsis: Synopsis[Any], items: Iterable[Any]) -> bytes:
    summary = synopsis.read(synopsis.zero())
    for item in items:
        summary.add(item)
    return bytes(summary.pack())


def answer_of(synopsis: Synopsis[Any], part: bytes) -> Any:
    summary = synopsis.read(part)
    if isinstance(synopsis, hs.Distinct):
        return round(summary.estimate, 6)
    return summary.at(0.5) if isinstance(synopsis, hs.Quantiles) else summary.top()


def test_few_items_are_exact_and_take_little_memory() -> None:
    for synopsis in EVERY:
        assert len(part_of(synopsis, range(5))) < 150 < synopsis.memory_bytes
    assert round(hs.Distinct().read(part_of(hs.Distinct(), "abcab")).estimate, 3) == 3
    assert hs.Quantiles().read(part_of(hs.Quantiles(), range(101))).at(0.9) == 90
    assert hs.HeavyHitters(str).read(part_of(hs.HeavyHitters(str), "abcab")).top(2) == [("a", 2, 2), ("b", 2, 2)]


def test_nothing_is_there_before_anything_is_added_and_none_adds_nothing() -> None:
    for synopsis in EVERY:
        summary = synopsis.read(synopsis.zero())
        summary.add(None)
        assert not summary.changed
    assert hs.Quantiles().read(b"").at(0.5) is None
    assert hs.HeavyHitters(str).read(b"").top() == []


def test_what_a_distinct_count_cannot_tell_apart_is_left_out_or_refused() -> None:
    visitors = hs.Distinct()
    assert answer_of(visitors, part_of(visitors, ["", "ann", ""])) == 1
    assert answer_of(visitors, part_of(visitors, [2**63 - 1, 2**63 - 2, -(2**63)])) == 3
    with pytest.raises(TypeError, match="a distinct count cannot store 9223372036854775808"):
        visitors.add(visitors.zero(), 2**63)
