"""Which instance gets which share of a component's input."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from homeostat.core.observation import Array
from homeostat.sim.spec import ComponentSpec

Keys = NDArray[np.uint64]


def shares(spec: ComponentSpec, parallelism: int, spread: int = 1, hot_share: float = 0.0, stride: int = 0) -> Array:
    """The share of the component's input that each instance gets; they add up to 1 and are read-only.

    `hot_share` goes to one key, the others share what is left. `spread` salts every key over that many
    neighbouring instances. With a `stride` the keys are its multiples and the hash is plain modulo, so that a
    parallelism with a common factor leaves instances empty; salting brings the good hash back.
    """
    if not spec.keyed:
        return _even(parallelism)
    return _keyed(spec.keys, spec.zipf, parallelism, min(spread, parallelism), hot_share, stride)


@lru_cache(maxsize=65_536)
def largest_share(spec: ComponentSpec, parallelism: int) -> float:
    """What the most loaded instance gets when nothing is wrong with the keys."""
    return float(shares(spec, parallelism).max())


def heaviest_key(spec: ComponentSpec) -> float:
    """The share of the most frequent key, below which no parallelism brings the most loaded instance."""
    return float(_weights(spec.keys, spec.zipf, 0.0)[0])


@lru_cache(maxsize=256)
def _even(parallelism: int) -> Array:
    return _read_only(np.full(parallelism, 1.0 / parallelism))


@lru_cache(maxsize=256)
def _keyed(keys: int, zipf: float, parallelism: int, spread: int, hot_share: float, stride: int) -> Array:
    weights = _weights(keys, zipf, hot_share)
    weak = stride > 1 and spread == 1
    hashes = _names(keys) * np.uint64(stride) if weak else _hashes(keys)
    target = (hashes % np.uint64(parallelism)).astype(np.int64)
    base = np.bincount(target, weights, minlength=parallelism)
    spread_out = sum((np.roll(base, salt) for salt in range(spread)), np.zeros(parallelism))
    return _read_only(spread_out / spread_out.sum())


@lru_cache(maxsize=64)
def _weights(keys: int, zipf: float, hot_share: float) -> Array:
    weights: Array = np.arange(1, keys + 1, dtype=np.float64) ** -zipf
    if hot_share > 0 and keys > 1:
        weights[1:] *= (1 - hot_share) / weights[1:].sum()
        weights[0] = hot_share
    return _read_only(weights / weights.sum())


def _names(keys: int) -> Keys:
    return np.arange(keys, dtype=np.uint64)


@lru_cache(maxsize=64)
def _hashes(keys: int) -> Keys:
    """splitmix64 of every key."""
    mixed = _names(keys) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _read_only(values: Array) -> Array:
    values.setflags(write=False)
    return values
