"""State that grows without bound: steadily, with no sign of levelling, and not because more rows come."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from homeostat.core.digest import Digest
from homeostat.core.evidence import Evidence
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.observation import Array
from homeostat.core.stats import median, spread
from homeostat.core.symptoms import STATE_GROWS
from homeostat.core.view import View
from homeostat.detectors.state_health import ROCKSDB, Seen, operators, unknown, worst

_PARTS = 6
_LEAST_IN_PART = 5
_LEVELLING = 0.4  # an increase below this share of the mean one is a sign that growth comes to an end
_SURE = 4.0
_LEAST_BYTES_GROWN = 0.2  # files are merged now and then: bytes must grow by more than that explains
_EXPLAINED = 0.5  # from this share on, growth is that of the load


class Trend(NamedTuple):
    """A series cut into parts of equal length: the median of each, and how far values scatter about the trend."""

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
    """Over the last `least_s`, or longer where batches come seldom, the state grew in every part, about as much in the
    last as in the first, more than the rows that came did, and so fast that it doubles within `doubles_within_s`.

    A query with a watermark lets go of its state some day: while nothing was removed, growth must last `patience_s`.
    """

    doubles_within_s: float = 86_400.0
    least_s: float = 3600.0
    patience_s: float = 14_400.0
    name: str = STATE_GROWS

    def detect(self, view: View) -> Iterator[Symptom]:
        yield from worst([s for name, seen in operators(view).items() if (s := self._judge(view, name, seen))])

    def _judge(self, view: View, operator: str, seen: Sequence[Seen]) -> Symptom | None:
        at_s = np.array([one.batch.at_s for one in seen])
        watched_s, last_s = float(at_s[-1] - at_s[0]), max(self.least_s, _enough_s(at_s))
        measures = {
            "rows": (np.array([one.state.rows for one in seen]), last_s / self.doubles_within_s),
            "bytes": (np.array([_bytes(one) for one in seen]), _LEAST_BYTES_GROWN),
        }
        if not any(np.isfinite(values[-LEAST_OBSERVATIONS:]).any() for values, _ in measures.values()):
            return unknown(self.name, "rows and bytes of the state")
        if watched_s < last_s or (_will_let_go(seen) and watched_s < self.patience_s):
            return None
        for what, (values, least_grown) in measures.items():
            trend = _trend(at_s, values, last_s)
            if trend is not None and self._unbounded(trend, least_grown):
                more = _share_of_the_load(view.history, at_s, values, last_s / _PARTS)
                if math.isnan(more):
                    return unknown(self.name, "rows of the batches")
                if more < _EXPLAINED:
                    return self._symptom(operator, what, trend)
        return None

    def _unbounded(self, trend: Trend, least_grown: float) -> bool:
        steps = np.diff(trend.levels)
        grown, level = float(trend.levels[-1] - trend.levels[0]), float(trend.levels[-1])
        steady = float(steps.min()) >= _LEVELLING * float(steps.mean()) > 0
        return steady and grown >= max(_SURE * trend.scatter, least_grown * (level - grown))

    def _symptom(self, operator: str, what: str, trend: Trend) -> Symptom:
        level = float(trend.levels[-1])
        doubles_s = level / trend.per_s
        rows, size = (level, None) if what == "rows" else (None, level)
        evidence = StateGrowth(operator, rows, size, 3600.0 * trend.per_s, doubles_s / 3600.0)
        return Symptom(STATE_GROWS, "", max(0.1, 1.0 - doubles_s / self.doubles_within_s), evidence)


def _enough_s(at_s: Array) -> float:
    """How long it takes until there are enough batches in every part, however seldom they come."""
    return 1.5 * _PARTS * _LEAST_IN_PART * median(np.diff(at_s)) if len(at_s) > 1 else math.inf


def _bytes(seen: Seen) -> float:
    return seen.state.disk_bytes if seen.state.backend == ROCKSDB else seen.state.memory_bytes


def _will_let_go(seen: Sequence[Seen]) -> bool:
    has_watermark = math.isfinite(seen[-1].batch.watermark_gap_s)
    return has_watermark and not any(one.state.removed_rows > 0 for one in seen)


def _trend(at_s: Array, values: Array, last_s: float) -> Trend | None:
    """None where too little was seen in one of the parts."""
    known = np.isfinite(values) & (at_s > at_s[-1] - last_s)
    at_s, values = at_s[known], values[known]
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


def _share_of_the_load(history: Sequence[Digest], at_s: Array, values: Array, part_s: float) -> float:
    """How much of the growth goes with the rows that came: 0 if they did not become more, 1 if they grew as the state
    did. Compared with the part of all that was seen before in which there was most state for each row."""
    begun_s = at_s[-1] - (_PARTS - 1) * part_s
    before = [
        (level, load)
        for until_s in np.arange(begun_s, at_s[0] - part_s, -part_s)
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


def _load_per_s(history: Sequence[Digest], until_s: float, part_s: float) -> float:
    """Rows taken a second; NaN if that is not known of any batch."""
    mine = [d for d in history if until_s - part_s < d.at_s <= until_s and math.isfinite(d.rows)]
    seconds = sum(d.span_s for d in mine)
    return sum(d.rows for d in mine) / seconds if seconds > 0 else math.nan
