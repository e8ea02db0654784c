"""The load: rows that arrive over time, with noise that does not depend on how time is divided."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import asin, cos, floor, inf, isfinite, pi, sin
from typing import Protocol

from homeostat.core.errors import ConfigError
from homeostat.sim.random_streams import Ar1, stream
from homeostat.sim.scenario.spec import WorkloadSpec

Point = tuple[float, float]


class Curve(Protocol):
    """A rate over time, and its integral: the rows."""

    def rate(self, t_s: float) -> float: ...

    def rows(self, t0_s: float, t1_s: float) -> float: ...


class Pieces:
    """A rate in straight pieces: constants, steps, ramps and traces."""

    def __init__(self, pieces: Sequence[tuple[float, float, float]]) -> None:
        """Each piece is (start_s, rate at the start, slope). The first one also holds before its start."""
        self._starts = [start for start, _, _ in pieces]
        self._pieces = pieces
        self._before = [0.0]
        for (start, rate, slope), (end, _, _) in pairwise(pieces):
            length = end - start
            self._before.append(self._before[-1] + length * (rate + slope * length / 2))

    def rate(self, t_s: float) -> float:
        start, rate, slope = self._pieces[self._index(t_s)]
        return rate + slope * (t_s - start)

    def rows(self, t0_s: float, t1_s: float) -> float:
        first, last = self._index(t0_s), self._index(t1_s)
        if first == last:
            return self._part(first, t0_s, t1_s)
        return (
            self._part(first, t0_s, self._starts[first + 1])
            + (self._before[last] - self._before[first + 1])
            + self._part(last, self._starts[last], t1_s)
        )

    def _index(self, t_s: float) -> int:
        return max(0, bisect_right(self._starts, t_s) - 1)

    def _part(self, index: int, t0_s: float, t1_s: float) -> float:
        start, rate, slope = self._pieces[index]
        return (t1_s - t0_s) * (rate + slope * ((t0_s + t1_s) / 2 - start))


class Wave:
    """max(0, mean + amplitude·sin(2πt / period + phase)), integrated exactly."""

    def __init__(self, mean: float, amplitude: float, period_s: float, phase: float = 0.0) -> None:
        self._mean, self._amplitude, self._phase = mean, amplitude, phase
        self._per_s = 2 * pi / period_s
        # The wave is above zero from the angle -rise to pi + rise.
        self._rise = asin(min(1.0, mean / amplitude)) if amplitude > 0 else pi / 2
        self._above = pi + 2 * self._rise
        self._whole = self._within(self._above)

    def rate(self, t_s: float) -> float:
        return max(0.0, self._mean + self._amplitude * sin(self._per_s * t_s + self._phase))

    def rows(self, t0_s: float, t1_s: float) -> float:
        return (self._until(t1_s) - self._until(t0_s)) / self._per_s

    def _until(self, t_s: float) -> float:
        angle = self._per_s * t_s + self._phase + self._rise
        turns = floor(angle / (2 * pi))
        return turns * self._whole + self._within(min(angle - turns * 2 * pi, self._above))

    def _within(self, angle: float) -> float:
        return self._mean * angle - self._amplitude * (cos(angle - self._rise) - cos(self._rise))


class Workload:
    """The rows that arrive. The noise factor of an interval depends only on the seed and the interval's number."""

    def __init__(self, spec: WorkloadSpec, seed: int, interval_s: float = 10.0) -> None:
        self._curve = _curve(spec)
        for spike in spec.spikes:
            _require(spike.at_s >= 0 and spike.for_s >= 0, "a spike's times must be 0 or more")
            _require(0 <= spike.factor < inf, f"a spike's factor must be 0 or more, not {spike.factor:g}")
        self._spikes = spec.spikes
        self._edges = sorted({t for s in spec.spikes for t in (s.at_s, s.at_s + s.for_s)})
        self._interval_s = interval_s
        self._noise = Ar1(spec.noise, stream(seed, "workload"))
        self._noisy = spec.noise.sigma > 0
        self._factors: list[float] = []

    def mean_per_s(self, t_s: float) -> float:
        """The rate at this moment, without noise."""
        return self._curve.rate(t_s) * self._spike_factor(t_s)

    def rows_between(self, t0_s: float, t1_s: float) -> float:
        """The rows that arrive in [t0_s, t1_s), with noise."""
        if not self._noisy and not self._edges:
            return self._curve.rows(t0_s, t1_s)
        total, start = 0.0, t0_s
        interval = int(t0_s // self._interval_s)
        while start < t1_s:
            end = min(t1_s, (interval + 1) * self._interval_s)
            if end > start:
                total += self._factor(interval) * self._mean_rows(start, end)
                start = end
            interval += 1
        return total

    def _mean_rows(self, t0_s: float, t1_s: float) -> float:
        if not self._edges:
            return self._curve.rows(t0_s, t1_s)
        cuts = [t0_s, *(t for t in self._edges if t0_s < t < t1_s), t1_s]
        return sum(self._spike_factor(a) * self._curve.rows(a, b) for a, b in pairwise(cuts))

    def _spike_factor(self, t_s: float) -> float:
        factor = 1.0
        for spike in self._spikes:
            if spike.at_s <= t_s < spike.at_s + spike.for_s:
                factor *= spike.factor
        return factor

    def _factor(self, interval: int) -> float:
        if not self._noisy:
            return 1.0
        while len(self._factors) <= interval:
            self._factors.append(float(self._noise.next()[0]))
        return self._factors[interval]


def _curve(spec: WorkloadSpec) -> Curve:
    for name in ("rate_per_s", "to_per_s", "amplitude_per_s", "start_s", "end_s"):
        value: float = getattr(spec, name)
        _require(isfinite(value) and value >= 0, f"{name} must be 0 or more, not {value:g}")
    match spec.kind:
        case "constant":
            return Pieces([(0.0, spec.rate_per_s, 0.0)])
        case "steps":
            points = _check("steps", spec.steps)
            return Pieces([(0.0 if i == 0 else at_s, rate, 0.0) for i, (at_s, rate) in enumerate(points)])
        case "ramp":
            _require(spec.end_s > spec.start_s, "a ramp must end after it starts", "set end_s above start_s")
            return _lines([(spec.start_s, spec.rate_per_s), (spec.end_s, spec.to_per_s)])
        case "trace":
            return _lines(_check("trace", spec.trace))
        case "sine":
            _require(spec.period_s > 0, f"period_s must be above 0, not {spec.period_s:g}")
            return Wave(spec.rate_per_s, spec.amplitude_per_s, spec.period_s)
        case "diurnal":
            _require(spec.period_s > 0, f"period_s must be above 0, not {spec.period_s:g}")
            night, day = spec.rate_per_s, spec.to_per_s
            _require(day >= night, "the peak of the day must not be below the night", "set to_per_s above rate_per_s")
            return Wave((day + night) / 2, (day - night) / 2, spec.period_s, phase=-pi / 2)
    raise ConfigError(
        f"unknown kind of workload {spec.kind!r}",
        where="workload",
        fix="use constant, steps, ramp, sine, diurnal or trace",
    )


def _lines(points: Sequence[Point]) -> Pieces:
    """Straight lines between the points; the first and the last value hold before and after."""
    slopes = [(r1 - r0) / (t1 - t0) for (t0, r0), (t1, r1) in pairwise(points)]
    inner = [(t, rate, slope) for (t, rate), slope in zip(points, [*slopes, 0.0], strict=True)]
    head = [(0.0, points[0][1], 0.0)] if points[0][0] > 0 else []
    return Pieces(head + inner)


def _check(name: str, points: Iterable[Point]) -> list[Point]:
    checked_points = list(points)
    _require(bool(checked_points), f"{name} is empty", "write at least one pair of time and rate")
    for at_s, rate in checked_points:
        if not (isfinite(at_s) and isfinite(rate) and at_s >= 0 and rate >= 0):
            raise _wrong(f"{name} has the point ({at_s:g}, {rate:g})", "times and rates must be 0 or more")
    for (t0, _), (t1, _) in pairwise(checked_points):
        if not t0 < t1:
            raise _wrong(
                f"{name} is not sorted by time: {t1:g} s follows {t0:g} s", "sort the points by time, each time once"
            )
    return checked_points


def _require(condition: bool, what: str, fix: str = "") -> None:
    if not condition:
        raise _wrong(what, fix)


def _wrong(what: str, fix: str) -> ConfigError:
    return ConfigError(what, where="workload", fix=fix)
