"""Summaries of bounded size, on Apache DataSketches. Each answers one question about its items, with a known error.

Spark's own functions can read their bytes: `hll_sketch_estimate`, `hll_union_agg`, `kll_sketch_…_double`.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from homeostat.core.errors import ConfigError
from homeostat.keyed_state.column_types import LONG

T = TypeVar("T", bound=str | int)


class Summary(Protocol):
    changed: bool

    def add(self, item: Any) -> None:
        """Add an item. None is ignored."""

    def merge(self, other: Self) -> None:
        """Add everything that was added to another summary."""

    def pack(self) -> bytes: ...


def library() -> Any:
    try:
        import datasketches
    except ImportError:
        raise ConfigError("datasketches is not installed", fix="pip install 'homeostat[synopses]'") from None
    return datasketches


class DistinctSummary:
    def __init__(self, lg_k: int, packed: bytes = b"") -> None:
        self._lib, self._lg_k, self.changed = library(), lg_k, False
        self._type = self._lib.tgt_hll_type.HLL_8
        sketch = self._lib.hll_sketch.deserialize(packed) if packed else self._lib.hll_sketch(lg_k, self._type)
        self._sketch = sketch

    def add(self, item: str | int | float | None) -> None:
        """Add an item. None and empty strings are ignored, as everywhere in DataSketches."""
        if isinstance(item, int) and item not in LONG:
            # It would be rounded to a float and confused with its neighbours.
            raise TypeError(f"a distinct count cannot store {item!r}, which exceeds 64 bits")
        if item is not None:
            self._sketch.update(item)
            self.changed = True

    def merge(self, other: DistinctSummary) -> None:
        union = self._lib.hll_union(self._lg_k)
        union.update(self._sketch)
        union.update(other._sketch)
        self._sketch = union.get_result(self._type)
        self.changed = True

    def pack(self) -> bytes:
        data: bytes = self._sketch.serialize_compact()
        return data

    @property
    def estimate(self) -> float:
        """The number of distinct items."""
        # A sketch that was never merged is estimated in another way. Merging it with itself makes the estimate
        # independent of how the items were cut into parts.
        union = self._lib.hll_union(self._lg_k)
        union.update(self._sketch)
        union.update(self._sketch)
        count: float = union.get_estimate()
        return count


class _Merged:
    """A sketch that can merge another one directly."""

    _sketch: Any
    changed: bool

    def merge(self, other: Self) -> None:
        self._sketch.merge(other._sketch)
        self.changed = True

    def pack(self) -> bytes:
        data: bytes = self._sketch.serialize()
        return data


class QuantilesSummary(_Merged):
    def __init__(self, k: int, packed: bytes = b"") -> None:
        kind = library().kll_doubles_sketch
        self._sketch, self.changed = kind.deserialize(packed) if packed else kind(k), False

    def add(self, item: float | None) -> None:
        if item is not None:
            self._sketch.update(item)
            self.changed = True

    @property
    def count(self) -> int:
        number: int = self._sketch.n
        return number

    def at(self, rank: float) -> float | None:
        """Return the value below which this share of the values lies: `at(0.5)` is the median; None if empty."""
        return None if self._sketch.is_empty() else float(self._sketch.get_quantile(rank))

    def rank(self, value: float) -> float | None:
        """Return the share of the values below this one."""
        return None if self._sketch.is_empty() else float(self._sketch.get_rank(value))


class Hitter(NamedTuple):
    item: Any
    at_least: int
    at_most: int


class HittersSummary(_Merged, Generic[T]):
    def __init__(self, kind: type[T], lg_size: int, packed: bytes = b"") -> None:
        self._lib, self._kind, self.changed = library(), kind, False
        sketch = self._lib.frequent_strings_sketch
        self._sketch = sketch.deserialize(packed) if packed else sketch(lg_size)

    def add(self, item: T | None, times: int = 1) -> None:
        if item is not None:
            self._sketch.update(str(item), times)
            self.changed = True

    @property
    def total(self) -> int:
        """How many items were added."""
        number: int = self._sketch.total_weight
        return number

    def top(self, n: int | None = None) -> list[Hitter]:
        """Return the most frequent items first. They include every item whose share of the total exceeds the error."""
        every = self._lib.frequent_items_error_type.NO_FALSE_NEGATIVES
        hitters = [Hitter(self._kind(item), low, high) for item, _, low, high in self._sketch.get_frequent_items(every)]
        return sorted(hitters, key=lambda hitter: (-hitter.at_most, hitter.item))[:n]
