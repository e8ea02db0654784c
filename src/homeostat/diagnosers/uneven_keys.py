"""Why partitions are uneven: one key is hot, or many keys fall on the same few partitions."""

from __future__ import annotations

import numpy as np

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.observation import Array
from homeostat.core.view import View
from homeostat.detectors.instance_skew import typically
from homeostat.diagnosers.probabilities import NO_SIGN, REPORTED
from homeostat.models.capacity import arrived_rows

# Partitions whose largest is at most this many times the others stand out by similar amounts. A hash makes such groups,
# a hot key does not. Choice.
_ALIKE_RATIO = 1.5
# A partition with less than this share of the mean is almost empty. Choice.
_EMPTY_SHARE = 0.05
# From this share of almost empty partitions on, too few distinct hashes are likely. Choice.
_MANY_EMPTY_SHARE = 0.25
# From this share of large partitions on, more than a few hot keys would be needed. Choice.
_SEVERAL_SHARE = 0.125
# The probability of the hash by the shape of the rows alone: many empty partitions, several large ones, one large one.
# The first of a pair holds if the large ones are alike. Choice: less sure than with counted keys.
_MANY_EMPTY, _MANY_EMPTY_UNLIKE = 0.85, 0.6
_SEVERAL_LARGE, _SEVERAL_LARGE_UNLIKE = 0.7, 0.55
_ONE_LARGE = 0.1


def by_hash(view: View, component: str, symptom: Symptom) -> float:
    """The probability that the hash makes the partitions uneven, and not a hot key.

    If the rows of the largest keys are counted: what the largest partition has too much without the hot keys is due to
    the hash. If the keys in the state were read: the hash is to blame if the keys are as uneven as the rows. Otherwise
    only the shape of the rows remains: a hot key makes one partition large and leaves none empty. If rows are
    aggregated before they reach a partition, no key is hot there.
    """
    rows = typically(arrived_rows(view.window, component, _latest(view)), 1)
    if len(rows) < 2 or not np.isfinite(rows).all() or rows.max() <= rows.mean():
        return NO_SIGN
    loads = view.key_loads(component)[-_latest(view) :]
    if loads and not _aggregated_before(view, component):
        return _by_hot_keys(rows, float(np.median([load.hot_share(len(rows)) for load in loads])))
    keys = view.balance.imbalance.get(len(rows)) if view.balance is not None else None
    if keys is None:
        return _by_shape(view, component, rows, symptom)
    explained_share = (keys - 1.0) / (float(rows.max() / rows.mean()) - 1.0)
    return float(np.clip(explained_share, NO_SIGN, REPORTED))


def largest_key(view: View, component: str) -> tuple[float | None, str]:
    """The share of the rows that the largest key has, and its name; None and "" if keys are not counted."""
    loads = view.key_loads(component)[-_latest(view) :]
    if not loads:
        return None, ""
    return float(np.median([load.share for load in loads])), loads[-1].key


def _latest(view: View) -> int:
    return len(view.window.telling(LEAST_OBSERVATIONS)) or LEAST_OBSERVATIONS


def _by_hot_keys(rows: Array, share: float) -> float:
    even = 1.0 / len(rows)
    largest = float(rows.max() / rows.sum())
    without_hot_keys = largest - share * (1.0 - even)
    return float(np.clip((without_hot_keys - even) / (largest - even), NO_SIGN, REPORTED))


def _by_shape(view: View, component: str, rows: Array, symptom: Symptom) -> float:
    if view.spread(component) > 1 and not _aggregated_before(view, component):
        return NO_SIGN  # a hot key was spread over several partitions
    busy = rows[rows > _EMPTY_SHARE * rows.mean()]
    if len(busy) > 1 and len(busy) <= (1.0 - _MANY_EMPTY_SHARE) * len(rows):
        return _MANY_EMPTY if busy.max() <= _ALIKE_RATIO * float(np.median(busy)) else _MANY_EMPTY_UNLIKE
    high = rows[list(symptom.instances)]
    if len(high) >= max(2.0, _SEVERAL_SHARE * len(rows)):
        return _SEVERAL_LARGE if high.max() <= _ALIKE_RATIO * high.min() else _SEVERAL_LARGE_UNLIKE
    return _ONE_LARGE


def _aggregated_before(view: View, component: str) -> bool:
    return view.micro_batch and view.spread(component) > 1
