"""Uneven partitions: because a key is hot, or because many keys happen to fall on the same few partitions?"""

from __future__ import annotations

import numpy as np

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.observation import Array
from homeostat.core.view import View
from homeostat.detectors.instance_skew import typically
from homeostat.models.capacity import arrived_rows

_SURE, _HARDLY = 0.95, 0.05
_ALIKE = 1.5
_EMPTY = 0.05
_MANY_EMPTY = 0.25
_SEVERAL = 0.125


def by_hash(view: View, component: str, symptom: Symptom) -> float:
    """How probable it is that the hash is to blame and no hot key.

    Where the rows of the largest keys are counted, they tell: what the largest partition has too much without the hot
    ones is the hash's doing. Where only the keys were looked at: keys as uneven as the rows are, even keys are not.
    Otherwise only the shape of the rows tells: a hot key makes one partition large and leaves none empty. Where rows
    are added up before they come to a partition, no key is hot there any more.
    """
    rows = typically(arrived_rows(view.window, component, LEAST_OBSERVATIONS), 1)
    if len(rows) < 2 or not np.isfinite(rows).all() or rows.max() <= rows.mean():
        return _HARDLY
    loads = view.key_loads(component)[-LEAST_OBSERVATIONS:]
    if loads and not _added_up_before(view, component):
        return _by_hot_keys(rows, float(np.median([load.hot_share(len(rows)) for load in loads])))
    keys = view.balance.imbalance.get(len(rows)) if view.balance is not None else None
    if keys is None:
        return _by_shape(view, component, rows, symptom)
    explained = (keys - 1.0) / (float(rows.max() / rows.mean()) - 1.0)
    return float(np.clip(explained, _HARDLY, _SURE))


def largest_key(view: View, component: str) -> tuple[float | None, str]:
    """The share of the rows that the largest key has, and its name; None and "" where keys are not watched."""
    loads = view.key_loads(component)[-LEAST_OBSERVATIONS:]
    if not loads:
        return None, ""
    return float(np.median([load.share for load in loads])), loads[-1].key


def _by_hot_keys(rows: Array, share: float) -> float:
    even = 1.0 / len(rows)
    largest = float(rows.max() / rows.sum())
    without = largest - share * (1.0 - even)
    return float(np.clip((without - even) / (largest - even), _HARDLY, _SURE))


def _by_shape(view: View, component: str, rows: Array, symptom: Symptom) -> float:
    if view.spread(component) > 1 and not _added_up_before(view, component):
        return _HARDLY  # several are large because a hot key was spread over them
    busy = rows[rows > _EMPTY * rows.mean()]
    if len(busy) > 1 and len(busy) <= (1.0 - _MANY_EMPTY) * len(rows):
        return 0.85 if busy.max() <= _ALIKE * float(np.median(busy)) else 0.6
    high = rows[list(symptom.instances)]
    if len(high) >= max(2.0, _SEVERAL * len(rows)):
        return 0.7 if high.max() <= _ALIKE * high.min() else 0.55
    return 0.1


def _added_up_before(view: View, component: str) -> bool:
    return view.micro_batch and view.spread(component) > 1
