"""The free space of the disks that an application uses, and when they will be full."""

from __future__ import annotations

import math
import shutil
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from homeostat.core.observation import NAN, DiskSample

# Disks are read this often: reading is cheap, but space changes slowly. A choice.
EVERY_S = 10.0
# One value a minute for six hours shows a steady rise through the ups and downs of single batches. Choices.
_KEPT, _KEPT_EVERY_S = 360, 60.0
# Over a shorter time a few files would look like a trend. A choice.
_LEAST_SPAN_S = 600.0


class Space(NamedTuple):
    free_bytes: float
    total_bytes: float


class _Moment(NamedTuple):
    at_s: float
    free_bytes: float


def space_of(path: Path) -> Space:
    """The space of the disk on which a path is, or will be once it exists."""
    place = next(each for each in (path, *path.parents) if each.exists())
    total_bytes, _, free_bytes = shutil.disk_usage(place)
    return Space(free_bytes, total_bytes)


class Disks:
    """`paths` maps each use to a path. Several paths on one disk count once."""

    def __init__(
        self,
        paths: Mapping[str, Path],
        space: Callable[[Path], Space] = space_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = {use: path.absolute() for use, path in paths.items()}
        self._space, self._clock = space, clock
        self._moments: dict[tuple[str, ...], deque[_Moment]] = {}
        self._samples: tuple[DiskSample, ...] = ()
        self._next_s = -math.inf

    @property
    def paths(self) -> Mapping[str, Path]:
        return self._paths

    def watch(self, use: str, path: Path) -> None:
        self._paths = {**self._paths, use: path.absolute()}

    def look(self) -> tuple[DiskSample, ...]:
        """The disks, read at most every few seconds. One that cannot be read is left out."""
        now_s = self._clock()
        if now_s >= self._next_s:
            self._next_s = now_s + EVERY_S
            self._samples = tuple(self._read(now_s))
        return self._samples

    def _read(self, now_s: float) -> list[DiskSample]:
        uses: dict[int, list[str]] = {}
        for use, path in self._paths.items():
            try:
                device = next(each for each in (path, *path.parents) if each.exists()).stat().st_dev
            except OSError:
                continue
            uses.setdefault(device, []).append(use)
        samples = []
        for names in uses.values():
            path = self._paths[names[0]]
            try:
                space = self._space(path)
            except OSError:
                continue
            full_in_s = self._full_in_s(tuple(names), now_s, space.free_bytes)
            samples.append(DiskSample(tuple(names), str(path), space.free_bytes, space.total_bytes, full_in_s))
        self._moments = {key: moments for key, moments in self._moments.items() if list(key) in uses.values()}
        return samples

    def _full_in_s(self, key: tuple[str, ...], now_s: float, free_bytes: float) -> float:
        moments = self._moments.setdefault(key, deque(maxlen=_KEPT))
        if not moments or now_s - moments[-1].at_s >= _KEPT_EVERY_S:
            moments.append(_Moment(now_s, free_bytes))
        if moments[-1].at_s - moments[0].at_s < _LEAST_SPAN_S:
            return NAN
        times_s = np.array([moment.at_s for moment in moments]) - moments[0].at_s
        slope = float(np.polyfit(times_s, np.array([moment.free_bytes for moment in moments]), 1)[0])
        return free_bytes / -slope if slope < 0 else NAN
