"""The share of a component's input that each of its instances gets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from homeostat.core.observation import Array
from homeostat.sim.scenario.spec import ComponentSpec

Keys = NDArray[np.uint64]

# Keys are processed in blocks of this many, so that ten million of them need no more memory than one block.
BLOCK = 1 << 16


def turn_at(spec: ComponentSpec, t_s: float) -> int:
    """How many times the keys have been replaced by new ones."""
    return int(t_s // spec.turn_s)


def shares(
    spec: ComponentSpec, parallelism: int, spread: int = 1, hot_share: float = 0.0, stride: int = 0, turn: int = 0
) -> Array:
    """The share of the component's input that each instance gets. The shares add up to 1 and are read-only.

    One key gets `hot_share`; the other keys divide the rest. `spread` salts every key over that many neighbouring
    instances. With a `stride`, the keys are multiples of it and the hash is a plain modulo, so that a parallelism with
    a common factor leaves instances empty; salting restores the good hash. Each `turn` has new keys.
    """
    if not spec.keyed:
        return _even(parallelism)
    return _keyed_shares(spec.keys, spec.zipf, parallelism, min(spread, parallelism), hot_share, stride, turn)


@lru_cache(maxsize=65_536)
def largest_share(spec: ComponentSpec, parallelism: int) -> float:
    """The share of the most loaded instance when no fault affects the keys."""
    return float(shares(spec, parallelism).max())


def heaviest_key(spec: ComponentSpec) -> float:
    """The share of the most frequent key. With any parallelism, the most loaded instance gets at least this share."""
    return 1.0 / _total_weight(spec.keys, spec.zipf)


@lru_cache(maxsize=256)
def _even(parallelism: int) -> Array:
    return _read_only(np.full(parallelism, 1.0 / parallelism))


@lru_cache(maxsize=256)
def _keyed_shares(
    keys: int, zipf: float, parallelism: int, spread: int, hot_share: float, stride: int, turn: int
) -> Array:
    stride = stride if spread == 1 else 0
    others = np.uint64(turn * keys)
    base = np.zeros(parallelism)
    has_hot = hot_share > 0 and keys > 1
    for names in _blocks(keys, first=1 if has_hot else 0):
        base += np.bincount(_targets(names + others, parallelism, stride), _weights(names, zipf), minlength=parallelism)
    if has_hot:
        rest = base.sum()
        base *= (1 - hot_share) / rest if rest > 0 else 0.0
        base[_targets(np.array([others]), parallelism, stride)] += hot_share
    spread_out = sum((np.roll(base, salt) for salt in range(spread)), np.zeros(parallelism))
    return _read_only(spread_out / spread_out.sum())


@lru_cache(maxsize=1024)
def _total_weight(keys: int, zipf: float) -> float:
    return sum(float(_weights(names, zipf).sum()) for names in _blocks(keys))


def _blocks(keys: int, first: int = 0) -> Iterator[Keys]:
    for start in range(first, keys, BLOCK):
        yield np.arange(start, min(start + BLOCK, keys), dtype=np.uint64)


def _weights(names: Keys, zipf: float) -> Array:
    """How often each key occurs, relative to the most frequent one."""
    return (names.astype(np.float64) + 1.0) ** -zipf


def _targets(names: Keys, parallelism: int, stride: int) -> NDArray[np.int64]:
    hashes = names * np.uint64(stride) if stride > 1 else _hashes(names)
    return (hashes % np.uint64(parallelism)).astype(np.int64)


def _hashes(names: Keys) -> Keys:
    """The splitmix64 hash of every key."""
    hashes = names + np.uint64(0x9E3779B97F4A7C15)
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


def _read_only(values: Array) -> Array:
    values.setflags(write=False)
    return values
