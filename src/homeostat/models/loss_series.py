"""The time that the latest batches lost to one cause, and the time that earlier batches usually lost to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from homeostat.core.observation import Array
from homeostat.core.stats import median, quantile
from homeostat.core.time_causes import GC_BOUND, TINY_TASKS, TOO_FEW_PARTITIONS
from homeostat.models.batch_parts import BatchParts
from homeostat.models.recoverable import BatchLosses

# The usual loss is a low quantile, so that a long-lasting problem does not count as usual. A choice.
USUAL_QUANTILE = 0.2
# A loss below this share of the trigger interval is not examined: half of the share that makes a symptom.
LEAST_SHARE = 0.05
# Causes that depend only on the numbers of tasks and slots.
_BY_LAYOUT = frozenset({TINY_TASKS, TOO_FEW_PARTITIONS})


@dataclass(frozen=True, slots=True)
class LossSeries:
    """The time that the latest batches lost to one cause. All arrays have one entry per batch, the latest last.

    A batch may take `allowed_s`: its trigger interval, or without one, its duration.
    `usual_s` is the time that earlier batches usually lost to the cause; NaN if unknown. `guessed` is True if the
    measurement that separates this cause from another is missing. `least_s` is the gain of removing the cause alone or
    after all others, whichever is less. `of_interval` is the time that the batch would take with the rows of one
    trigger interval, as a share of its real time. Only a cause outside of all tasks has it, because waiting rows make
    only tasks longer.
    """

    cause: str
    component: str
    lost_s: Array
    seconds: Array
    trigger_s: Array
    allowed_s: Array
    usual_s: float = math.nan
    guessed: bool = False
    instances: tuple[int, ...] = ()
    workers: tuple[str, ...] = ()
    least_s: Array | None = None
    of_interval: Array | None = None

    @property
    def beside_s(self) -> Array:
        """The loss beside larger ones, of which it may be a part."""
        return self.lost_s if self.least_s is None else self.least_s

    @property
    def share(self) -> Array:
        """The loss as a share of the time that a batch may take."""
        return np.asarray(self.lost_s / self.allowed_s)


def series_of(
    cause: str,
    component: str,
    batches: Sequence[BatchLosses],
    earlier: Sequence[BatchLosses],
    least: int,
    times: tuple[Array, Array, Array],
    of_interval: Array | None,
) -> LossSeries:
    losses = [each.losses.get((cause, component)) for each in batches]
    guesses = [loss.guessed for loss in losses if loss is not None]
    series = LossSeries(
        cause,
        component,
        np.array([0.0 if loss is None else loss.seconds for loss in losses]),
        *times,
        guessed=2 * sum(guesses) > len(guesses),
        least_s=np.array([0.0 if loss is None else loss.beside_s for loss in losses]),
        of_interval=of_interval,
    )
    # A very small loss is not compared with the usual one.
    if len(earlier) < least or not (component == "" or bool((series.share >= LEAST_SHARE).any())):
        return series
    usual_s = _at_present_size(cause, component, batches, earlier) if component else _seconds(cause, "", earlier)
    return replace(series, usual_s=quantile(np.sort(usual_s), USUAL_QUANTILE))


def _seconds(cause: str, component: str, batches: Sequence[BatchLosses]) -> list[float]:
    return [each.seconds(cause, component) for each in batches]


def _at_present_size(
    cause: str, component: str, batches: Sequence[BatchLosses], earlier: Sequence[BatchLosses]
) -> list[float]:
    """The time that earlier batches would have lost in their tasks at the present size, on the present slots."""
    now, slots = median(np.array([_size(each.parts, cause, component) for each in batches])), batches[-1].parts.slots
    lost_s = _seconds(cause, component, earlier)
    return [
        _growth(now, _size(each.parts, cause, component), each.parts.slots / slots) * seconds if seconds else 0.0
        for seconds, each in zip(lost_s, earlier, strict=True)
    ]


def _size(parts: BatchParts, cause: str, component: str) -> float:
    """The loss grows with this: for layout and garbage collection the time of the tasks, for others the rows."""
    if cause in _BY_LAYOUT:
        return parts.work_s(component)
    return parts.stage_s(component) if cause == GC_BOUND else parts.rows


def _growth(now: float, then: float, slots: float) -> float:
    """How much more an earlier batch would have lost."""
    return max(1.0, now / then) * slots if then > 0 else 1.0


def times_of(batches: Sequence[BatchLosses]) -> tuple[Array, Array, Array]:
    """How long each batch took, its trigger interval, and how long it may take."""
    seconds, trigger_s = np.array([b.parts.seconds for b in batches]), np.array([b.parts.trigger_s for b in batches])
    return seconds, trigger_s, np.where(trigger_s > 0, trigger_s, seconds)
