"""The executors of an application as the REST API lists them, and which of them came and went."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable

from homeostat.core.observation import WorkerSample
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.task_columns import worker_sample

_FRESH_S = 3.0  # a choice: a lost executor is noticed within a batch or two, with a request every few seconds

# The share of the time that reading may take: the list of thousands of executors is long. A choice.
_SHARE_OF_TIME = 0.05


def executor_news(lost_ids: Iterable[str], new_ids: Iterable[str]) -> str:
    """A sentence for the log."""
    sentences = [f"executor {worker} was lost" for worker in sorted(lost_ids)]
    return ", ".join(sentences + [f"executor {worker} was added" for worker in sorted(new_ids)])


class ExecutorWatch:
    """Remembers the executors of the latest answer. `on_change` gets those that are gone and those that are new.

    Executors that are `leaving` count as gone: they get no more tasks, even if their processes end later.
    """

    def __init__(
        self,
        rest: RestClient,
        clock: Callable[[], float],
        on_change: Callable[[frozenset[str], frozenset[str]], None],
        leaving: Callable[[], Collection[str]],
    ) -> None:
        self._rest, self._clock = rest, clock
        self._on_change, self._leaving = on_change, leaving
        self._started_s, self._read_s = clock(), -math.inf
        self._fresh_s = _FRESH_S
        self.workers = WorkerSample()

    @property
    def fresh(self) -> bool:
        return self._clock() - self._read_s < self._fresh_s

    @property
    def silent_s(self) -> float:
        """How long the REST API has not answered."""
        return self._clock() - max(self._read_s, self._started_s)

    def read(self) -> None:
        began_s = self._clock()
        before, self.workers = self.workers, worker_sample(self._rest.executors(), self._leaving())
        self._read_s = self._clock()
        self._fresh_s = max(_FRESH_S, (self._read_s - began_s) / _SHARE_OF_TIME)
        if before.ids and before.ids != self.workers.ids:
            old, new = frozenset(before.ids), frozenset(self.workers.ids)
            try:
                self._on_change(old - new, new - old)
            except Exception:
                self.workers = before  # the next answer tells the same news again
                raise
