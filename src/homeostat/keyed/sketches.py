"""Summaries of bounded size, on Apache DataSketches: of what was added each tells one thing, with a known error.

Their bytes are those that Spark's own functions read: `hll_sketch_estimate`, `hll_union_agg`, `kll_sketch_…_double`.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from homeostat.core.errors import ConfigError
from homeostat.keyed.column_types import LONG

T = TypeVar("T", bound=str | int)


class Summary(Protocol):
    changed: bool

    def add(self, item: Any) -> None:
        """None adds nothing."""

    def merge(self, other: Self) -> None:
        """As if all that went into the other had been added here."""

    def packed(self) -> bytes: ...


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
        made = self._lib.hll_sketch.deserialize(packed) if packed else self._lib.hll_sketch(lg_k, self._type)
        self._sketch = made

    def add(self, item: str | int | float | None) -> None:
        """An empty text adds nothing either, which is how DataSketches has it everywhere."""
        if isinstance(item, int) and item not in LONG:
            # It would be taken for a float, as would others near it.
            raise TypeError(f"a distinct count cannot keep {item!r}")
        if item is not None:
            self._sketch.update(item)
            self.changed = True

    def merge(self, other: DistinctSummary) -> None:
        union = self._lib.hll_union(self._lg_k)
        union.update(self._sketch)
        union.update(other._sketch)
        self._sketch = union.get_result(self._type)
        self.changed = True

    def packed(self) -> bytes:
        found: bytes = self._sketch.serialize_compact()
        return found

    @property
    def estimate(self) -> float:
        """How many different ones."""
        # A sketch that was never merged would be read in another way. Merged with itself it is read as all others are,
        # so that in which parts the items came makes no difference.
        union = self._lib.hll_union(self._lg_k)
        union.update(self._sketch)
        union.update(self._sketch)
        found: float = union.get_estimate()
        return found


class _Merged:
    """A sketch that takes in another by itself."""

    _sketch: Any
    changed: bool

    def merge(self, other: Self) -> None:
        self._sketch.merge(other._sketch)
        self.changed = True

    def packed(self) -> bytes:
        found: bytes = self._sketch.serialize()
        return found


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
        found: int = self._sketch.n
        return found

    def at(self, rank: float) -> float | None:
        """The value below which this share of the values lies: `at(0.5)` is the median. None if there are none."""
        return None if self._sketch.is_empty() else float(self._sketch.get_quantile(rank))

    def rank(self, value: float) -> float | None:
        """The share of the values that lies below this one."""
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
        """How often anything was added."""
        found: int = self._sketch.total_weight
        return found

    def top(self, n: int | None = None) -> list[Hitter]:
        """The most frequent first. Whatever has a larger share of the total than the error is among them."""
        every = self._lib.frequent_items_error_type.NO_FALSE_NEGATIVES
        found = [Hitter(self._kind(item), low, high) for item, _, low, high in self._sketch.get_frequent_items(every)]
        return sorted(found, key=lambda hitter: (-hitter.at_most, hitter.item))[:n]
