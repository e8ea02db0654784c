"""Whether batches show the effect of a limit or an interval that was changed while they ran. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Sign(Enum):
    """What a batch shows: the new value is in effect, the old one is, or the batch would look the same with both."""

    NEW = "new"
    OLD = "old"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class SeenBatch:
    """`rows` are those of the sources whose limit changed. `more_waits` is true if these sources had more rows than
    the batch took."""

    number: int
    began_s: float
    took_s: float
    rows: float
    more_waits: bool = False


# If this many batches began after a change and still look as before, the change has no effect.
BATCHES = 2


def rows_sign(batch: SeenBatch, old: float, new: float) -> Sign:
    """`old` and `new` are the limits; infinite means no limit. Sources round their limits, so the nearer one is assumed
    to be in effect.
    """
    if new < old:
        middle = (min(old, 2.0 * new) + new) / 2.0
        return Sign.NEW if batch.rows <= middle else Sign.OLD
    if batch.rows > old:
        return Sign.NEW
    return Sign.OLD if batch.more_waits else Sign.NONE


def trigger_sign(earlier: SeenBatch, later: SeenBatch, old_s: float, new_s: float) -> Sign:
    """`earlier` and `later` are consecutive batches that both began after the change. Spark begins a batch at the next
    multiple of the interval, or at once if the batch before took longer than that."""
    due_old_s, due_new_s = _due_s(earlier, old_s), _due_s(earlier, new_s)
    apart_s = abs(due_new_s - due_old_s)
    if later.began_s > max(due_old_s, due_new_s) + apart_s / 2.0:
        return Sign.NONE  # no rows had come when it was due
    if abs(later.began_s - due_new_s) < abs(later.began_s - due_old_s):
        return Sign.NEW
    return Sign.OLD if abs(later.began_s - due_old_s) < abs(later.began_s - due_new_s) else Sign.NONE


def _due_s(batch: SeenBatch, interval_s: float) -> float:
    ended_s = batch.began_s + batch.took_s
    if interval_s <= 0:
        return ended_s
    return max(ended_s, (batch.began_s // interval_s + 1.0) * interval_s)


def verdict(signs: list[Sign]) -> Sign:
    """One sign of the new value is enough. `signs` are those of batches begun after the change, oldest first."""
    if Sign.NEW in signs:
        return Sign.NEW
    return Sign.OLD if signs.count(Sign.OLD) >= BATCHES else Sign.NONE
