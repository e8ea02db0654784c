"""Detects state that grows without bound: steadily, without levelling off, and not because more rows arrive."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from homeostat.core.evidence import Evidence
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.history import History
from homeostat.core.observation import Array
from homeostat.core.stats import median, spread
from homeostat.core.symptoms import STATE_GROWS
from homeostat.core.view import View
from homeostat.detectors.state_health import ROCKSDB, OperatorHistory, operators, unknown_symptom, worst

# Parts of equal length that the time is cut into: more show levelling better and need more batches. A choice.
_PARTS = 6
# Batches that each part needs for its median. A choice.
_LEAST_IN_PART = 5
# How much longer than the batches need at their median distance: some of them come late. A choice.
_LATE_BATCHES = 1.5
# An increase below this share of the mean one is a sign that growth is ending: a higher share finds less real growth. A
# choice.
_LEVELLING = 0.4
# The state must have grown by this many times its scatter: fewer would find growth in noise. A choice.
_SURE = 4.0
# Bytes must grow by this share, more than merging files explains. A choice.
_LEAST_BYTES_GROWTH = 0.2
# From this share of the growth on, the load explains it. A choice.
_EXPLAINED = 0.5
# Unbounded growth has at least this severity, however slow it is: it never ends by itself. A choice.
_LEAST_SEVERITY = 0.1
# How many batches in a row, how many updates in each, and which share of new keys among them show that each row adds a
# key. If keys repeat, more and more of them are known. Fewer would report a state that has just begun to fill. Choices.
_BATCHES_OF_NEW_KEYS, _UPDATES_THAT_TELL, _NEW_KEYS = 12, 10.0, 0.9
_HOUR_S = 3600.0


class Trend(NamedTuple):
    """A series cut into parts of equal length: the median of each, the scatter about the trend, and the slope."""

    levels: Array
    scatter: float
    per_s: float


@dataclass(frozen=True, slots=True)
class StateGrowth(Evidence):
    headline: ClassVar[str] = "the state grows steadily"
    operator: str
    state_rows: float | None
    state_bytes: float | None
    growth_per_hour: float
    hours_to_double: float


@dataclass(frozen=True, slots=True)
class StateGrowthDetector:
    """Reports state that grew in every part of the last `least_s`, or of longer if batches are rare.

    It must have grown about as much in the last part as in the first, more than the rows that arrived did, and so fast
    that it doubles within `doubles_within_s`.

    A query with a watermark removes state at some time. Until it first does, growth must last for `patience_s`. Without
    one, a dozen batches in which nearly each update adds a key are enough.
    """

    # Slower growth does not need an alert: longer reports more, and more that does no harm. A choice: a day.
    doubles_within_s: float = 86_400.0
    # How long the state must have grown: shorter is sooner, but mistakes a busy hour for growth. A choice.
    least_s: float = _HOUR_S
    # How long a query with a watermark may take until it removes its first state: most windows are shorter. A choice.
    patience_s: float = 4 * _HOUR_S
    name: str = STATE_GROWS

    def detect(self, view: View) -> Iterator[Symptom]:
        yield from worst([s for one in operators(view).values() if (s := self._judge(view, one))])

    def _judge(self, view: View, one: OperatorHistory) -> Symptom | None:
        at_s = one.batch("at_s")
        watched_s, last_s = float(at_s[-1] - at_s[0]), max(self.least_s, _enough_s(at_s))
        measures = {
            "rows": (one.state("rows"), last_s / self.doubles_within_s),
            "bytes": (_bytes(one), _LEAST_BYTES_GROWTH),
        }
        if not any(np.isfinite(values[-LEAST_OBSERVATIONS:]).any() for values, _ in measures.values()):
            return unknown_symptom(self.name, "rows and bytes of the state")
        if _adds_a_key_with_each_update(one):
            return self._symptom(one.operator, "rows", _last_growth(at_s, measures["rows"][0]))
        if watched_s < last_s or (_will_let_go(one) and watched_s < self.patience_s):
            return None
        for what, (values, least_growth) in measures.items():
            trend = _trend(at_s, values, last_s)
            if trend is not None and self._is_unbounded(trend, least_growth):
                more = _share_of_the_load(view.numbers, at_s, values, last_s / _PARTS)
                if math.isnan(more):
                    return unknown_symptom(self.name, "rows of the batches")
                if more < _EXPLAINED:
                    return self._symptom(one.operator, what, trend)
        return None

    def _is_unbounded(self, trend: Trend, least_growth: float) -> bool:
        steps = np.diff(trend.levels)
        growth, level = float(trend.levels[-1] - trend.levels[0]), float(trend.levels[-1])
        steady = float(steps.min()) >= _LEVELLING * float(steps.mean()) > 0
        return steady and growth >= max(_SURE * trend.scatter, least_growth * (level - growth))

    def _symptom(self, operator: str, what: str, trend: Trend) -> Symptom:
        level = float(trend.levels[-1])
        doubles_s = level / trend.per_s
        rows, size = (level, None) if what == "rows" else (None, level)
        evidence = StateGrowth(operator, rows, size, _HOUR_S * trend.per_s, doubles_s / _HOUR_S)
        return Symptom(STATE_GROWS, "", max(_LEAST_SEVERITY, 1.0 - doubles_s / self.doubles_within_s), evidence)


def _enough_s(at_s: Array) -> float:
    """Return how long it takes until every part has enough batches."""
    return _LATE_BATCHES * _PARTS * _LEAST_IN_PART * median(np.diff(at_s)) if len(at_s) > 1 else math.inf


def _bytes(one: OperatorHistory) -> Array:
    return one.state("disk_bytes" if one.latest.state.backend == ROCKSDB else "memory_bytes")


def _will_let_go(one: OperatorHistory) -> bool:
    has_watermark = math.isfinite(one.latest.batch.watermark_gap_s)
    return has_watermark and not bool((one.state("removed_rows") > 0).any())


def _adds_a_key_with_each_update(one: OperatorHistory) -> bool:
    """Whether nothing will ever remove a key, and nearly every update so far brought a new one."""
    updating = np.flatnonzero(one.state("updated_rows") > 0)[-_BATCHES_OF_NEW_KEYS - 1 :]
    if len(updating) <= _BATCHES_OF_NEW_KEYS or np.isfinite(one.batch("watermark_gap_s")[updating]).any():
        return False
    rows, updated_rows, removed_rows = (one.state(name)[updating] for name in ("rows", "updated_rows", "removed_rows"))
    new = np.diff(rows) >= _NEW_KEYS * updated_rows[1:]
    return bool(new.all() and (updated_rows >= _UPDATES_THAT_TELL).all() and not (removed_rows > 0).any())


def _last_growth(at_s: Array, rows: Array) -> Trend:
    last = slice(-_BATCHES_OF_NEW_KEYS, None)
    return Trend(rows[last], 0.0, float((rows[last][-1] - rows[last][0]) / (at_s[last][-1] - at_s[last][0])))


def _trend(at_s: Array, values: Array, last_s: float) -> Trend | None:
    """Return the trend of the last `last_s`; None if one of the parts has too few batches."""
    usable = np.isfinite(values) & (at_s > at_s[-1] - last_s)
    at_s, values = at_s[usable], values[usable]
    if not len(at_s):
        return None
    part = np.minimum(((at_s - (at_s[-1] - last_s)) / last_s * _PARTS).astype(int), _PARTS - 1)
    parts = [values[part == number] for number in range(_PARTS)]
    if min(len(one) for one in parts) < _LEAST_IN_PART:
        return None
    levels = np.array([median(one) for one in parts])
    middles = np.array([median(at_s[part == number]) for number in range(_PARTS)])
    pairs = [(i, j) for j in range(_PARTS) for i in range(j)]
    per_s = median(np.array([(levels[j] - levels[i]) / (middles[j] - middles[i]) for i, j in pairs]))
    return Trend(levels, spread(values - np.interp(at_s, middles, levels)), per_s)


def _share_of_the_load(history: History, at_s: Array, values: Array, part_s: float) -> float:
    """Return how much of the growth the load explains: 0 if no more rows arrive, 1 if they grew as the state did.

    The last part is compared with the earlier part that had most state for each row.
    """
    began_s = at_s[-1] - (_PARTS - 1) * part_s
    before = [
        (level, load)
        for until_s in np.arange(began_s, at_s[0] - part_s, -part_s)
        if (level := _level(at_s, values, until_s, part_s)) > 0 and (load := _load_per_s(history, until_s, part_s)) > 0
    ]
    level, load = _level(at_s, values, at_s[-1], part_s), _load_per_s(history, at_s[-1], part_s)
    if math.isnan(load):
        return math.nan
    if not before or load == 0:
        return 0.0
    old_level, old_load = max(before, key=lambda one: one[0] / one[1])
    if level <= old_level:
        return 1.0
    return max(0.0, math.log(load / old_load)) / math.log(level / old_level)


def _level(at_s: Array, values: Array, until_s: float, part_s: float) -> float:
    part = values[(at_s > until_s - part_s) & (at_s <= until_s)]
    return median(part[np.isfinite(part)])


def _load_per_s(history: History, until_s: float, part_s: float) -> float:
    """Return the rows per second of the batches; NaN if no batch reports any."""
    at_s, rows, span_s = (history.flow(name, len(history)) for name in ("at_s", "rows", "span_s"))
    mine = (at_s > until_s - part_s) & (at_s <= until_s) & np.isfinite(rows)
    seconds = sum(span_s[mine].tolist())
    return sum(rows[mine].tolist()) / seconds if seconds > 0 else math.nan
