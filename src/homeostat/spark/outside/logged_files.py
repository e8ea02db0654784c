"""The files that batches read and wrote, from the SQL events of a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.core.observation import FileSample
from homeostat.spark.outside.event_log import Event
from homeostat.spark.sense.sql_executions import FILE_METRICS, describes, file_sample

Json = Mapping[str, Any]
_KEPT = 200  # a choice: more executions than the batches under way have


@dataclass
class _Execution:
    description: str
    metrics: dict[int, str] = field(default_factory=dict)
    values: dict[int, float] = field(default_factory=dict)

    @property
    def sums(self) -> dict[str, float]:
        sums: dict[str, float] = {}
        for number, value in self.values.items():
            if name := self.metrics.get(number):
                sums[name] = sums.get(name, 0.0) + value
        return sums


class LoggedFiles:
    """Takes events in their order. The driver itself counts files, so tasks are not needed."""

    def __init__(self) -> None:
        self._executions: dict[int, _Execution] = {}

    def started(self, event: Event) -> None:
        """Take the batch from the execution of the whole batch, because the user may describe the executions inside
        it."""
        number = int(event["executionId"])
        whole = self._executions.get(int(event.get("rootExecutionId", number)))
        execution = _Execution(whole.description if whole else str(event.get("description") or ""))
        execution.metrics |= dict(_file_metrics(event["sparkPlanInfo"]))
        self._executions[number] = execution
        for old in list(self._executions)[:-_KEPT]:
            del self._executions[old]

    def replanned(self, event: Event) -> None:
        """Adaptive execution has changed the plan."""
        if execution := self._executions.get(int(event["executionId"])):
            execution.metrics |= dict(_file_metrics(event["sparkPlanInfo"]))

    def counted(self, event: Event) -> None:
        if execution := self._executions.get(int(event["executionId"])):
            execution.values |= {int(number): float(value) for number, value in event["accumUpdates"]}

    def of_batch(self, run: str, batch: int) -> FileSample:
        return file_sample(each.sums for each in self._executions.values() if describes(each.description, run, batch))


def _file_metrics(plan: Json) -> Iterator[tuple[int, str]]:
    """The number and the name of each metric about files, in this plan and its children."""
    for metric in plan.get("metrics") or ():
        if metric["name"] in FILE_METRICS:
            yield int(metric["accumulatorId"]), str(metric["name"])
    for child in plan.get("children") or ():
        yield from _file_metrics(child)
