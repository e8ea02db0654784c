"""A batch that takes several trigger intervals counts as several observations, so that decisions do not wait for more
of them.

It has the rows of several intervals, and its tasks say as much as those of several batches. That matters right after a
change: an application that is far behind has long batches, and three of them can take minutes. Batches that end in time
count once, so that noise alone never brings a decision forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from homeostat.core.digest import Digest
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.observation import Observation
from homeostat.core.view import View, Window

_Seen = TypeVar("_Seen", Digest, Observation)


def compares_instances(detector: object) -> bool:
    """Whether the detector compares tasks or executors with each other. One batch says little about them, however long
    it took: the first ones after a start or a change are late because executors are cold."""
    return bool(getattr(detector, "compares_instances", False))


def weight(digest: Digest) -> int:
    """Return as how many observations the batch counts: whole trigger intervals that it took, at most as many as any
    finding needs."""
    if not digest.trigger_s > 0 or not digest.seconds >= 2.0 * digest.trigger_s:
        return 1
    return int(min(LEAST_OBSERVATIONS, digest.seconds // digest.trigger_s))


def weighted_count(digests: Iterable[Digest]) -> int:
    return sum(weight(digest) for digest in digests)


def with_late_batches(view: View, least: int) -> View:
    """Return the view in which each late batch is repeated as often as it counts, if there are fewer than `least`
    batches.
    """
    current = view.current
    if len(current) >= least or all(weight(digest) == 1 for digest in current):
        return view
    times = {digest.at_s: weight(digest) for digest in current}
    older = view.history[: len(view.history) - len(current)]
    history = (*older, *(part for digest in current for part in _parts(digest, times[digest.at_s])))
    window = Window(tuple(part for o in view.window.observations for part in _parts(o, times.get(o.at_s, 1))))
    return replace(view, history=history, window=window)


def _parts(observation: _Seen, count: int) -> Iterator[_Seen]:
    """The same measurements, each over its part of the time."""
    for left in range(count - 1, -1, -1):
        span_s = observation.span_s / count
        yield replace(observation, at_s=observation.at_s - left * span_s, span_s=span_s)
