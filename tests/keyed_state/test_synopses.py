"""Synopses outside a query: parts that are merged, what their bytes mean to Spark, what is refused. See also bench."""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Iterable
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import homeostat as hs
from homeostat.core.errors import ConfigError
from homeostat.keyed_state.merge_check import Merging, require_mergeable
from homeostat.keyed_state.synopses import Synopsis
from support.paths import DOCS

PAGE = DOCS / "how-to" / "write-stateful-code.md"

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


@pytest.mark.parametrize("synopsis", EVERY, ids=lambda each: type(each).__name__)
@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 50), max_size=20), max_size=4), st.randoms())
def test_in_which_parts_items_come_does_not_matter(
    synopsis: Synopsis[Any], parts: list[list[int]], chance: Any
) -> None:
    together = reduce(synopsis.add, (item for part in parts for item in part), synopsis.zero())
    chance.shuffle(parts)
    merged = reduce(synopsis.merge, (part_of(synopsis, part) for part in parts), synopsis.zero())
    assert answer_of(synopsis, merged) == answer_of(synopsis, together)


@pytest.mark.parametrize("synopsis", EVERY, ids=lambda each: type(each).__name__)
def test_each_may_be_the_functions_of_a_keyed_operator(synopsis: Synopsis[Any]) -> None:
    merging = Merging(synopsis.zero, synopsis.add, synopsis.merge, lambda part: answer_of(synopsis, part))
    require_mergeable(merging, range(-3, 9), "keyed", stored_form=bytearray)


def test_the_bytes_of_a_synopsis_may_be_the_result_if_it_is_told_what_they_mean() -> None:
    visitors = hs.Distinct()
    merging = Merging(visitors.zero, visitors.add, visitors.merge)
    with pytest.raises(ConfigError) as refused:
        require_mergeable(merging, range(9), "keyed")
    assert refused.value.line.startswith("keyed: merge is not commutative: merge(b'")
    assert refused.value.line.endswith("(if these bytes mean the same, pass a function that decodes them: compare=…)")
    require_mergeable(merging, range(9), "keyed", compare=lambda part: answer_of(visitors, part))
    with pytest.raises(ConfigError, match=r"keyed: compare raised TypeError: .* \(make compare accept every result\)"):
        require_mergeable(merging, range(9), "keyed", compare=operator.neg)


def test_a_large_distinct_count_is_the_same_to_the_digit_however_it_was_merged() -> None:
    visitors = hs.Distinct()
    whole = part_of(visitors, range(60_000))
    parts = [part_of(visitors, range(start, 60_000, 7)) for start in range(7)]
    merged = [reduce(visitors.merge, parts), reduce(visitors.merge, reversed(parts))]
    assert [answer_of(visitors, part) for part in merged] == [answer_of(visitors, whole)] * 2


def test_a_smaller_error_takes_more_memory() -> None:
    for kind in (hs.Distinct, hs.Quantiles, lambda error: hs.HeavyHitters(str, error)):
        sizes = [kind(error).memory_bytes for error in (0.1, 0.03, 0.01)]
        assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("error", [0.0, 1.0, -0.1, 2.0])
def test_an_error_is_a_share(error: float) -> None:
    with pytest.raises(ConfigError, match="error: must be between 0 and 1"):
        hs.Distinct(error)


def test_an_error_that_no_sketch_has_is_refused() -> None:
    with pytest.raises(ConfigError, match="no sketch has an error as small as 1e-06"):
        hs.Distinct(1e-6).read(b"")


def test_without_the_library_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasketches", None)
    with pytest.raises(ConfigError, match=re.escape("(pip install 'homeostat[synopses]')")):
        hs.Distinct().read(b"")


def test_the_page_states_the_memory() -> None:
    stated = re.findall(r"^\| `hs\.(\w+)\(.*\| ([0-9,]+)\b[^|]*\|$", PAGE.read_text(encoding="utf-8"), re.M)
    every: tuple[Synopsis[Any], ...] = (hs.Distinct(), hs.Quantiles(), hs.HeavyHitters(str))
    assert dict(stated) == {type(each).__name__: f"{each.memory_bytes:,}" for each in every}
