"""Synopses: approximate variables with bounded memory and a stated error.

Each is a variable of a State. It also has the functions for `keyed`: `zero`, `add`, `merge` and `read`.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from homeostat.core.errors import ConfigError
from homeostat.keyed_state.cells import Cell
from homeostat.keyed_state.sketches import DistinctSummary, HittersSummary, QuantilesSummary, Summary, library
from homeostat.keyed_state.variables import Kind

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle, ValueState

S = TypeVar("S", bound=Summary)
T = TypeVar("T", bound=str | int)

# The length of an item that `memory_bytes` assumes for heavy hitters. A choice.
ITEM_BYTES = 64
# The sizes that DataSketches allows.
_LG_K = range(4, 22)
_K = range(8, 65_536)
_LG_SIZE = range(3, 27)
# Levels of a KLL sketch after 10^12 values, and the size of the smallest level. From DataSketches.
_LEVELS, _LOWEST_LEVEL = 40, 8


class Synopsis(Kind, Generic[S]):
    """`error` is the stated error. `memory_bytes` is the largest size of the state of a key, however much is added."""

    def __init__(self, error: float, ttl: str | None) -> None:
        super().__init__(ttl)
        if not 0 < error < 1:
            raise ConfigError(f"must be between 0 and 1, not {error:g}", where="error", fix="use a share such as 0.02")
        self.error = error

    @property
    def memory_bytes(self) -> int:
        raise NotImplementedError

    def zero(self) -> bytes:
        return b""

    def add(self, part: bytes, item: Any) -> bytes:
        summary = self.read(part)
        summary.add(item)
        return summary.pack()

    def merge(self, one: bytes, other: bytes) -> bytes:
        if not one or not other:
            return one or other
        summary = self.read(one)
        summary.merge(self.read(other))
        return summary.pack()

    def read(self, part: bytes) -> S:
        raise NotImplementedError

    def open(self, handle: StatefulProcessorHandle) -> Cell:
        return _SummaryCell(handle.getValueState(self.name, "summary BINARY", self.ttl_ms), self)

    def __get__(self, state: object, owner: type) -> S:
        summary: S = self.cell(state).get()
        return summary


class Distinct(Synopsis[DistinctSummary]):
    """The number of distinct items, with a relative error of at most `error` in 95 of 100 cases."""

    def __init__(self, error: float = 0.02, *, ttl: str | None = None) -> None:
        super().__init__(error, ttl)

    def read(self, part: bytes) -> DistinctSummary:
        return DistinctSummary(self._lg_k, bytes(part))

    @property
    def memory_bytes(self) -> int:
        lib = library()
        size: int = lib.hll_sketch.get_max_updatable_serialization_bytes(self._lg_k, lib.tgt_hll_type.HLL_8)
        return size

    @cached_property
    def _lg_k(self) -> int:
        error_of = library().hll_sketch.get_rel_err
        return _smallest(_LG_K, self.error, lambda lg_k: abs(error_of(False, True, lg_k, 2)))


class Quantiles(Synopsis[QuantilesSummary]):
    """Quantiles of values. The rank of an answer is within `error` of the requested one, except once in a million."""

    def __init__(self, error: float = 0.01, *, ttl: str | None = None) -> None:
        super().__init__(error, ttl)

    def read(self, part: bytes) -> QuantilesSummary:
        return QuantilesSummary(self._k, bytes(part))

    @property
    def memory_bytes(self) -> int:
        values = (
            3 * self._k + _LEVELS * _LOWEST_LEVEL
        )  # each level is a third smaller than the one before, down to the smallest
        return 8 * (values + 2) + 4 * _LEVELS + 24

    @cached_property
    def _k(self) -> int:
        error_of = library().kll_doubles_sketch.get_normalized_rank_error  # exceeded once in a hundred cases
        return _smallest(_K, self.error, lambda k: 2 * error_of(k, False))


class HeavyHitters(Synopsis[HittersSummary[T]]):
    """The most frequent items. A count is wrong by at most `error` × the number of items, always."""

    def __init__(self, kind: type[T], error: float = 0.001, *, ttl: str | None = None) -> None:
        super().__init__(error, ttl)
        self._kind = kind

    def read(self, part: bytes) -> HittersSummary[T]:
        return HittersSummary(self._kind, self._lg_size, bytes(part))

    @property
    def memory_bytes(self) -> int:
        """For items of at most `ITEM_BYTES` bytes."""
        return 3 * (1 << self._lg_size) // 4 * (8 + 4 + ITEM_BYTES) + 32

    @cached_property
    def _lg_size(self) -> int:
        error_of = library().frequent_strings_sketch.get_epsilon_for_lg_size
        return _smallest(_LG_SIZE, self.error, error_of)


class _SummaryCell(Generic[S]):
    """Reads the summary from its bytes once per call, and writes it once at the end if anything was added."""

    def __init__(self, store: ValueState, synopsis: Synopsis[S]) -> None:
        self._store, self._synopsis = store, synopsis
        self.forget()

    def forget(self) -> None:
        self._summary: S | None = None

    def get(self) -> S:
        if self._summary is None:
            stored_bytes = self._store.get() if self._store.exists() else None
            self._summary = self._synopsis.read(stored_bytes[0] if stored_bytes else b"")
        return self._summary

    def clear(self) -> None:
        self.forget()
        self._store.clear()

    def flush(self) -> None:
        if self._summary is not None and self._summary.changed:
            self._store.update((self._summary.pack(),))


def _smallest(sizes: range, error: float, error_of: Any) -> int:
    """The smallest size with at most this error. A larger sketch has a smaller error."""
    place = bisect_left(sizes, True, key=lambda size: error_of(size) <= error)
    if place == len(sizes):
        raise ConfigError(
            f"no sketch has an error as small as {error:g}", where="error", fix=f"use {error_of(sizes[-1]):.2g} or more"
        )
    return sizes[place]
