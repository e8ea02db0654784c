"""The load that the experiment source produces: the number of rows at each time, and the word of each row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property, lru_cache
from itertools import pairwise
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array, IntArray
from homeostat.sim.random_streams import stream
from homeostat.sim.scenario.spec import Noise, Spike, WorkloadSpec
from homeostat.sim.workload import Workload

Load = tuple[tuple[float, float], ...]
Words = NDArray[np.str_]

HOT_WORD = "hot"
NOISE_INTERVAL_S = 10.0  # a choice: the load has another noise factor in each interval of this length
# Rows are counted in blocks of this size, to bound the memory.
BLOCK_ROWS = 1 << 20


@dataclass(frozen=True)
class Profile:
    """A load over time and its words. Equal profiles give equal rows, on every machine and in every replay.

    Words follow Zipf's law with exponent `zipf` over `keys` keys. `hot` has pairs (row, share): from that row on, this
    share of the rows is the extra word "hot". After every `turn_rows` rows the words swap their frequencies; 0 means
    never.
    """

    workload: WorkloadSpec
    keys: int = 1000
    zipf: float = 1.0
    hot: tuple[tuple[int, float], ...] = ()
    seed: int = 1
    turn_rows: int = 0

    def __post_init__(self) -> None:
        _require(self.keys >= 1, f"keys = {self.keys} must be at least 1")
        _require(self.zipf >= 0, f"zipf = {self.zipf:g} must be at least 0")
        _require(self.turn_rows >= 0, f"turn_rows = {self.turn_rows} must be at least 0")
        for from_row, share in self.hot:
            _require(
                from_row >= 0 and 0 <= share <= 1,
                f"hot contains ({from_row}, {share:g})",
                "use a row number and a share from 0 to 1",
            )
        for (earlier, _), (later, _) in pairwise(self.hot):
            _require(
                earlier < later,
                f"hot is not sorted: row {later} comes after row {earlier}",
                "sort it by row, each row once",
            )
        Workload(self.workload, self.seed, NOISE_INTERVAL_S)

    def rows_until(self, t_s: float, load: Load = ()) -> int:
        """The rows that have arrived `t_s` seconds after the start.

        `load` has pairs (second, factor): from that second on, the load is multiplied by the factor.
        """
        steps = [(0.0, 1.0), *load]
        ends = [max(0.0, from_s) for from_s, _ in load] + [t_s]
        rows = 0.0
        for (from_s, factor), end_s in zip(steps, ends, strict=True):
            start_s, stop_s = max(0.0, from_s), min(end_s, t_s)
            if stop_s > start_s:
                rows += factor * (self._arrivals_until(stop_s) - self._arrivals_until(start_s))
        return floor(rows + 1e-6)

    def arrival_s(self, row: int, until_s: float, load: Load = ()) -> float:
        """When that row arrived, to the millisecond, but at most `until_s`."""
        low, high = 0, max(0, round(until_s * 1000))
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.rows_until(middle / 1000, load) > row else (middle + 1, high)
        return low / 1000

    def _arrivals_until(self, t_s: float) -> float:
        if self.workload.noise.sigma == 0:
            return self._load.rows_between(0.0, t_s)
        whole = int(t_s // NOISE_INTERVAL_S)
        sums = self._sums
        while len(sums) <= whole:
            end_s = len(sums) * NOISE_INTERVAL_S
            sums.append(sums[-1] + self._load.rows_between(end_s - NOISE_INTERVAL_S, end_s))
        return sums[whole] + self._load.rows_between(whole * NOISE_INTERVAL_S, t_s)

    @cached_property
    def _load(self) -> Workload:
        return Workload(self.workload, self.seed, NOISE_INTERVAL_S)

    @cached_property
    def _sums(self) -> list[float]:
        """Rows that arrived in the first 0, 1, 2, … intervals, as far as computed."""
        return [0.0]

    def words(self, start: int, stop: int) -> Words:
        """The words of the rows from `start` up to but not including `stop`."""
        return _vocabulary(self.keys)[self._word_numbers(start, stop)]

    def expected_counts(self, rows: int) -> dict[str, int]:
        """How often each word occurs in the first `rows` rows. Words that do not occur are left out."""
        totals = np.zeros(self.keys + 1, dtype=np.int64)
        for start in range(0, rows, BLOCK_ROWS):
            numbers = self._word_numbers(start, min(rows, start + BLOCK_ROWS))
            totals += np.bincount(numbers, minlength=self.keys + 1)
        words = _vocabulary(self.keys)
        return {str(words[number]): int(totals[number]) for number in np.flatnonzero(totals)}

    def _word_numbers(self, start: int, stop: int) -> IntArray:
        rows = np.arange(start, stop, dtype=np.int64)
        numbers: IntArray = np.searchsorted(
            _cumulative_shares(self.keys, self.zipf), self._uniform("word", rows), "right"
        )
        if self.hot:
            shares = np.array([0.0, *(share for _, share in self.hot)])
            share = shares[np.searchsorted([from_row for from_row, _ in self.hot], rows, "right")]
            numbers[self._uniform("hot", rows) < share] = self.keys
        if self.turn_rows:
            numbers = (numbers + rows // self.turn_rows) % (self.keys + 1)
        return numbers

    def _uniform(self, purpose: str, rows: IntArray) -> Array:
        """Pseudo-random numbers in [0, 1) that depend only on the seed, the purpose and the row (splitmix64)."""
        x = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + _salt(self.seed, purpose)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        uniform: Array = (x >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return uniform

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Profile:
        return _read(text)


@lru_cache(maxsize=64)
def _read(text: str) -> Profile:
    """Return the same object for equal texts, because it caches its results."""
    try:
        values = json.loads(text)
        workload = values.pop("workload")
        return Profile(
            workload=WorkloadSpec(**{**workload, **_nested_values(workload)}),
            hot=tuple((int(row), float(share)) for row, share in values.pop("hot", ())),
            **_checked_fields(values),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"not a profile: {error}", where="option profile", fix="use the text that Profile.to_json() returns"
        ) from error


def _nested_values(workload: Mapping[str, Any]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for name in ("steps", "trace"):
        tables[name] = tuple((float(at_s), float(rate)) for at_s, rate in workload.get(name, ()))
    tables["spikes"] = tuple(Spike(**spike) for spike in workload.get("spikes", ()))
    tables["noise"] = Noise(**workload.get("noise", {}))
    return tables


def _checked_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    unknown_keys = set(values) - {field.name for field in fields(Profile)}
    if unknown_keys:
        raise ValueError(f"unknown key {min(unknown_keys)!r}")
    return dict(values)


def checked_load(steps: Sequence[Sequence[float]]) -> Load:
    """Pairs (second, factor) in order of time. Anything else raises ValueError or TypeError."""
    load = tuple((float(from_s), float(factor)) for from_s, factor in steps)
    for from_s, factor in load:
        if not (0 <= from_s < float("inf") and 0 <= factor < float("inf")):
            raise ValueError(f"the load contains ({from_s:g}, {factor:g}), which is not valid")
    for (earlier_s, _), (later_s, _) in pairwise(load):
        if later_s <= earlier_s:
            raise ValueError(f"the load is not sorted: {later_s:g} s comes after {earlier_s:g} s")
    return load


@lru_cache(maxsize=8)
def _vocabulary(keys: int) -> Words:
    return np.array([*(f"word-{number}" for number in range(keys)), HOT_WORD])


@lru_cache(maxsize=8)
def _cumulative_shares(keys: int, zipf: float) -> Array:
    weights: Array = np.arange(1, keys + 1, dtype=np.float64) ** -zipf
    shares_until: Array = np.cumsum(weights) / weights.sum()
    # Without this, rounding could leave the last value below 1, and a row above it would have no word.
    shares_until[-1] = 1.0
    return shares_until


@lru_cache(maxsize=64)
def _salt(seed: int, purpose: str) -> np.uint64:
    return np.uint64(stream(seed, "profile", purpose).integers(2**64, dtype=np.uint64))


def _require(condition: bool, what: str, fix: str = "") -> None:
    if not condition:
        raise ConfigError(what, where="profile", fix=fix)
