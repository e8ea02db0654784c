"""Lists, maps and counts in state are like Python's own, whatever is done to them in one batch or over several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import homeostat as hs
from homeostat.testing import Rehearsal

Deed = Callable[[Any], Any]
small = st.integers(0, 3)


class Kept(hs.State):
    emits = "seen STRING"
    map = hs.Map(int, int)
    list = hs.List(int)
    counts = hs.Counts(int)

    def on_rows(self, key: str, rows: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            yield (row.deed(self),)


class Plain:
    """What it should be like."""

    def __init__(self) -> None:
        self.map: dict[int, int] = {}
        self.list: list[int] = []
        self.counts: Counter[int] = Counter()


def put(holder: Any, key: int, value: int) -> None:
    holder.map[key] = value


def see(holder: Any, item: int, times: int) -> None:
    holder.counts[item] += times


def unsee(holder: Any, item: int) -> None:
    del holder.counts[item]


def assign(holder: Any, items: list[int]) -> None:
    holder.list = items


def assign_map(holder: Any, entries: dict[int, int]) -> None:
    holder.map = entries


deeds: st.SearchStrategy[Deed] = st.one_of(
    st.tuples(small, small).map(lambda pair: lambda holder: put(holder, *pair)),
    small.map(lambda key: lambda holder: holder.map.pop(key, "none")),
    small.map(lambda key: lambda holder: (key in holder.map, holder.map.get(key))),
    st.just(lambda holder: holder.map.clear()),
    st.just(lambda holder: (sorted(holder.map.items()), len(holder.map), bool(holder.map))),
    small.map(lambda item: lambda holder: holder.list.append(item)),
    st.lists(small, max_size=3).map(lambda items: lambda holder: assign(holder, items)),
    st.just(lambda holder: assign(holder, [item + 1 for item in holder.list])),
    st.dictionaries(small, small, max_size=2).map(lambda entries: lambda holder: assign_map(holder, entries)),
    st.just(lambda holder: assign_map(holder, {key: value + 1 for key, value in holder.map.items()})),
    st.just(lambda holder: holder.list.clear()),
    st.tuples(small, st.integers(1, 3)).map(lambda pair: lambda holder: see(holder, *pair)),
    small.map(lambda item: lambda holder: (holder.counts[item], item in holder.counts)),
    small.map(lambda item: lambda holder: unsee(holder, item)),
    small.map(lambda item: lambda holder: holder.counts.pop(item, 0)),
    st.just(lambda holder: sorted(holder.counts.most_common())),
    st.just(lambda holder: (list(holder.list), len(holder.list), bool(holder.list))),
)


@given(st.lists(st.lists(deeds, max_size=8), max_size=4))
def test_lists_maps_and_counts_are_like_pythons(batches: list[list[Deed]]) -> None:
    rehearsal, plain = Rehearsal(Kept(), key="key"), Plain()
    for batch in batches:
        rows = rehearsal.feed(*({"key": "a", "deed": deed} for deed in batch))
        assert rows == [(deed(plain),) for deed in batch]
    kept = rehearsal["a"]
    assert (dict(kept.map), list(kept.list), dict(kept.counts)) == (plain.map, plain.list, plain.counts)
