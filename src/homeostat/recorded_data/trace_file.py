"""A recorded load for a scenario: read strictly, repaired where that is safe, and refused where it is not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.recorded_data.load import FASTEST_PER_S, ValueKind
from homeostat.recorded_data.load_table import Moment, read_strictly, too_short
from homeostat.strict.toml_reading import read_text
from homeostat.strict.units import format_duration

# Timestamps further apart than this many times the usual spacing leave a gap. Below it they are only late.
GAP_FROM_SPACINGS = 1.5
# Longer gaps than this many spacings are listed one by one, since a straight line may be far from what happened there.
LONG_GAP_SPACINGS = 10
# More long gaps than this are only counted, to keep the notes readable.
LONG_GAPS_LISTED = 5


@dataclass(frozen=True, slots=True)
class Trace:
    """Points of (seconds since the first timestamp, rows per second), and the repairs that led to them."""

    points: tuple[tuple[float, float], ...]
    spacing_s: float
    repairs: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        return self.points[-1][0]


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """`scale` multiplies the rates; `speedup` makes time pass faster and leaves the rates as they are.

    The repairs list each gap longer than `max_gap_s`; by default, ten times the usual spacing.
    """

    values: ValueKind = "count"
    scale: float = 1.0
    speedup: float = 1.0
    max_gap_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("scale", "speedup"):
            number = getattr(self, name)
            if not (math.isfinite(number) and number > 0):
                raise ConfigError(f"'{name}' of a trace must be above 0, not {number}")


def read(path: str | Path, options: TraceOptions = TraceOptions()) -> Trace:  # noqa: B008 (a frozen value)
    return parse(read_text(path), str(path), options)


def parse(text: str, name: str, options: TraceOptions = TraceOptions()) -> Trace:  # noqa: B008 (a frozen value)
    moments = list(read_strictly(text, name))
    repairs: list[str] = []
    times_s, values = _sort(moments, repairs)
    times_s, values = _without_duplicates(times_s, values, repairs)
    if len(times_s) < 2:
        raise too_short(name)
    spacing_s = float(np.median(np.diff(times_s)))
    present = ~np.isnan(values)
    if not present.all():
        repairs.append(f"{_count(int((~present).sum()), 'missing value')}: left out, which leaves a gap")
    times_s, values = times_s[present], values[present]
    if len(times_s) < 2:
        raise too_short(name)
    _note_gaps(times_s, spacing_s, options.max_gap_s, repairs)
    per_value = options.scale / (spacing_s if options.values == "count" else 1.0)
    _refuse_too_fast(moments, per_value, name)
    with np.errstate(over="ignore", invalid="ignore"):
        rates = values * per_value
        offsets_s = (times_s - times_s[0]) / options.speedup
    if not np.isfinite(rates).all():
        raise ConfigError("the scaled rates are too large to compute with", where=name, fix="lower 'scale'")
    if not np.isfinite(offsets_s).all():
        raise ConfigError("the times are too large to compute with", where=name, fix="raise 'speedup'")
    points = tuple(zip(offsets_s.tolist(), rates.tolist(), strict=True))
    return Trace(points, spacing_s / options.speedup, tuple(repairs))


def _refuse_too_fast(moments: Sequence[Moment], per_value: float, name: str) -> None:
    for moment in moments:
        per_s = moment.value * per_value
        if per_s > FASTEST_PER_S:
            raise ConfigError(
                f"the value {moment.value:g} means {per_s:g} rows/s; the limit is {FASTEST_PER_S:g}",
                where=f"{name}:{moment.line}",
                fix="correct it, or lower 'scale'",
            )


def _sort(moments: Sequence[Moment], repairs: list[str]) -> tuple[Array, Array]:
    times_s = np.array([moment.time_s for moment in moments], dtype=np.float64)
    values = np.array([moment.value for moment in moments], dtype=np.float64)
    backward = int((np.diff(times_s) < 0).sum())
    if backward:
        repairs.append(f"{_count(backward, 'timestamp')} out of order: sorted")
    order = np.argsort(times_s, kind="stable")
    return times_s[order], values[order]


def _without_duplicates(times_s: Array, values: Array, repairs: list[str]) -> tuple[Array, Array]:
    """One row per timestamp, with the mean of its values that are not missing."""
    unique_s, group = np.unique(times_s, return_inverse=True)
    extra = len(times_s) - len(unique_s)
    if not extra:
        return times_s, values
    repairs.append(f"{_count(extra, 'duplicate timestamp')}: replaced by the mean")
    present = ~np.isnan(values)
    totals = np.bincount(group[present], weights=values[present], minlength=len(unique_s))
    counts = np.bincount(group[present], minlength=len(unique_s))
    means = np.full(len(unique_s), np.nan)
    np.divide(totals, counts, out=means, where=counts > 0)
    return unique_s, means


def _note_gaps(times_s: Array, spacing_s: float, max_gap_s: float | None, repairs: list[str]) -> None:
    limit_s = LONG_GAP_SPACINGS * spacing_s if max_gap_s is None else max_gap_s
    widths_s = np.diff(times_s)
    gaps = widths_s > GAP_FROM_SPACINGS * spacing_s
    short = gaps & (widths_s <= limit_s)
    if short.any():
        widest = format_duration(float(widths_s[short].max()))
        repairs.append(f"{_count(int(short.sum()), 'gap')} of up to {widest}: interpolated")
    long = np.flatnonzero(gaps & ~short)
    for index in long[:LONG_GAPS_LISTED]:
        width, start = format_duration(float(widths_s[index])), format_duration(float(times_s[index] - times_s[0]))
        repairs.append(f"a long gap of {width}, {start} after the start: interpolated; check that this is right")
    if len(long) > LONG_GAPS_LISTED:
        repairs.append(f"{len(long) - LONG_GAPS_LISTED} more long gaps: interpolated; check that this is right")


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
