"""Measures whether synopses stay within the error and memory that they state.

Each is filled in parts, as instances would fill it, and merged. Memory is the largest size of any part or of the whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from homeostat.keyed_state.sketches import Summary
from homeostat.keyed_state.synopses import Distinct, HeavyHitters, Quantiles, Synopsis
from homeostat.lab.bench.ground import machine

KEYS = 10_000_000
PARTS = 8
HOT = 20
_LOOKS = 20  # how often the memory of each part is measured while it fills
_RANKS = np.arange(1, 100) / 100

Tell = Callable[[str], None]


def measure(*, keys: int, tell: Tell) -> dict[str, Any]:
    figures = {}
    for name, test in (("distinct", _distinct), ("quantiles", _quantiles), ("heavy_hitters", _heavy_hitters)):
        tell(f"{name.replace('_', ' ')}: {keys:,} keys in {PARTS} parts")
        figures[name] = test(keys)
    return {"keys": keys, "parts": PARTS, "synopses": figures, "machine": machine()}


def _distinct(keys: int) -> dict[str, Any]:
    synopsis = Distinct()
    fill = _Fill(synopsis)
    for part in range(PARTS):
        fill.add(range(part, keys, PARTS))
    return fill.figures(abs(fill.summary.estimate / keys - 1))


def _quantiles(keys: int) -> dict[str, Any]:
    """Every number below `keys` once, in any order: the rank of each is known."""
    synopsis = Quantiles()
    fill = _Fill(synopsis)
    for part in np.array_split(np.random.default_rng(1).permutation(keys).astype(float), PARTS):
        fill.add(part.tolist())
    values = [fill.summary.at(rank) or 0.0 for rank in _RANKS]
    return fill.figures(float(np.max(np.abs(np.array(values) / keys - _RANKS))))


def _heavy_hitters(keys: int) -> dict[str, Any]:
    """Every key once, and a few hot keys: the n-th occurs 1/n times as often as the first."""
    synopsis = HeavyHitters(int)
    fill = _Fill(synopsis)
    hot = {-number: keys // (10 * PARTS * number) for number in range(1, HOT + 1)}  # in each part
    for part in range(PARTS):
        fill.add(range(part, keys, PARTS))
        for item, times in hot.items():
            fill.summary.add(item, times=times)
    hitters, total = fill.summary.top(), fill.summary.total
    truth = {item: PARTS * times for item, times in hot.items()}
    off = [max(each.at_most - truth.get(each.item, 1), truth.get(each.item, 1) - each.at_least) for each in hitters]
    expected_items = {item for item, times in truth.items() if times > synopsis.error * total}
    missed_items = expected_items - {each.item for each in hitters}
    return fill.figures(1.0 if missed_items else max(off) / total) | {
        "found": len(hitters),
        "missed": len(missed_items),
    }


class _Fill:
    """The merged parts, the most memory that any of them used, and the time since the start."""

    def __init__(self, synopsis: Synopsis[Any]) -> None:
        self._synopsis, self._began = synopsis, time.perf_counter()
        self.summary: Any = synopsis.read(synopsis.zero())
        self._bytes = 0

    def add(self, items: Sequence[Any]) -> None:
        part: Summary = self._synopsis.read(self._synopsis.zero())
        every = max(1, len(items) // _LOOKS)
        for number, item in enumerate(items):
            part.add(item)
            if number % every == 0:
                self._look(part)
        self._look(part)
        self.summary.merge(part)
        self._look(self.summary)

    def _look(self, part: Summary) -> None:
        self._bytes = max(self._bytes, len(part.pack()))

    def figures(self, error: float) -> dict[str, Any]:
        stated_error, stated_bytes = self._synopsis.error, self._synopsis.memory_bytes
        return {
            "error": error,
            "stated_error": stated_error,
            "bytes": self._bytes,
            "stated_bytes": stated_bytes,
            "within": error <= stated_error and self._bytes <= stated_bytes,
            "seconds": round(time.perf_counter() - self._began, 2),
        }
