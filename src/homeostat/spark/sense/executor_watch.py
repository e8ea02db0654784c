"""The executors of an application as Spark lists them, and which of them came and went."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping

from homeostat.core.observation import DriverSample, WorkerLoss, WorkerSample
from homeostat.spark.sense.gc_share import GcShare
from homeostat.spark.sense.rest_answers import Executor
from homeostat.spark.sense.status_source import StatusSource
from homeostat.spark.sense.task_columns import MEMORY_FRACTION, worker_sample

_FRESH_S = 3.0  # a choice: a lost executor is noticed within a batch or two, with a request every few seconds

# The share of the time that reading may take: the list of thousands of executors is long. A choice.
_SHARE_OF_TIME = 0.05
_LOSSES_KEPT = 100  # a choice: more than are lost between two batches, unless the whole cluster is
_MOST_CHARACTERS = 200  # a choice: Spark's reasons have up to three sentences
# How Spark begins the reason for an executor that was removed on purpose.
_ASKED = ("Executor decommission", "Executor killed by driver", "Executor Process Lost due to decommission")


def asked_to_leave(reason: str) -> bool:
    """Whether an executor was removed on purpose, according to Spark's reason."""
    return reason.startswith(_ASKED) or "finished decommissioning" in reason


def short_loss(reason: str) -> str:
    """The first line, shortened."""
    return reason.partition("\n")[0].strip()[:_MOST_CHARACTERS]


def memory_fraction(properties: Mapping[str, str]) -> float:
    """The share of the heap that Spark gives to caches and operators, from the settings of the application."""
    try:
        return float(properties.get("spark.memory.fraction", MEMORY_FRACTION))
    except ValueError:
        return MEMORY_FRACTION


def executor_news(lost_ids: Iterable[str], new_ids: Iterable[str]) -> str:
    """A sentence for the log."""
    sentences = [f"executor {worker} was lost" for worker in sorted(lost_ids)]
    return ", ".join(sentences + [f"executor {worker} was added" for worker in sorted(new_ids)])


class ExecutorWatch:
    """Remembers the executors of the latest answer. `on_change` gets the removed and the added ones.

    Executors that are `leaving` count as removed: they get no more tasks, even if their processes end later.
    """

    def __init__(
        self,
        status: StatusSource,
        clock: Callable[[], float],
        on_change: Callable[[frozenset[str], frozenset[str]], None],
        leaving: Callable[[], Collection[str]],
    ) -> None:
        self._status, self._clock = status, clock
        self._on_change, self._leaving = on_change, leaving
        self._started_s, self._read_s = clock(), -math.inf
        self._fresh_s = _FRESH_S
        self._memory_fraction: float | None = None
        self._losses: deque[WorkerLoss] = deque(maxlen=_LOSSES_KEPT)
        self.lost_count = 0
        self._driver: Executor | None = None
        self._driver_gc = GcShare()
        self.workers = WorkerSample()

    @property
    def fresh(self) -> bool:
        return self._clock() - self._read_s < self._fresh_s

    @property
    def silent_s(self) -> float:
        """For how long Spark has not answered."""
        return self._clock() - max(self._read_s, self._started_s)

    def read(self) -> None:
        began_s = self._clock()
        if self._memory_fraction is None:
            self._memory_fraction = memory_fraction(self._status.properties())
        executors = self._status.executors()
        before, self.workers = self.workers, worker_sample(executors, self._leaving(), self._memory_fraction)
        self._driver = next((each for each in executors if each.id == "driver"), None)
        if self._driver is not None:
            self._driver_gc.note(began_s, self._driver.gc_s)
        self._read_s = self._clock()
        self._fresh_s = max(_FRESH_S, (self._read_s - began_s) / _SHARE_OF_TIME)
        if before.ids and before.ids != self.workers.ids:
            old, new = frozenset(before.ids), frozenset(self.workers.ids)
            try:
                self._on_change(old - new, new - old)
            except Exception:
                self.workers = before  # the next answer reports the same change again
                raise
            self._note_losses(before, {each.id: each for each in executors})

    def driver_sample(self, batch_s: float) -> DriverSample:
        """The driver as Spark shows it, at the end of a batch that took `batch_s`."""
        if self._driver is None:
            return DriverSample()
        limit_bytes = self._driver.heap_limit_bytes(self._memory_fraction or MEMORY_FRACTION)
        return DriverSample(self._driver.heap_bytes, limit_bytes, self._driver_gc.seconds_of(batch_s))

    def losses(self, after: int) -> tuple[WorkerLoss, ...]:
        """The executors that were lost after the first `after` ones, as far as they are remembered."""
        count = min(self.lost_count - after, len(self._losses))
        return tuple(self._losses)[len(self._losses) - count :]

    def _note_losses(self, before: WorkerSample, executors: Mapping[str, Executor]) -> None:
        leaving = self._leaving()
        for worker, host in zip(before.ids, before.hosts, strict=True):
            reason = executors[worker].loss if worker in executors else ""
            if worker not in self.workers.ids and worker not in leaving and not asked_to_leave(reason):
                self._losses.append(WorkerLoss(worker, host, short_loss(reason)))
                self.lost_count += 1
