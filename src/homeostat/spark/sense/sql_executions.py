"""The files that a batch read and wrote, from the SQL metrics that Spark shows for it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from homeostat.core.observation import NAN, FileSample
from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.status_source import StatusSource

Json = Mapping[str, Any]
READ, READ_BYTES = "number of files read", "size of files read"
WRITTEN, WRITTEN_BYTES = "number of written files", "written output"
FILE_METRICS = (READ, READ_BYTES, WRITTEN, WRITTEN_BYTES)
# An answer takes the driver about 10 ms. If other queries have run more executions than this between two batches, the
# files are unknown. A choice.
_MOST_READ = 10
_JOBS = ("runningJobIds", "successJobIds", "failedJobIds")
_KEPT = 200  # a choice: more than the batches under way have
_NUMBER = re.compile(r"([0-9.,]+)(?:\s*(B|[KMGTPE]iB))?")
_UNITS = {None: 1.0, "B": 1.0} | {f"{unit}iB": 2.0 ** (10 * power) for power, unit in enumerate("KMGTPE", start=1)}
_RDD_SCAN = "Scan ExistingRDD"
_FILE_OPERATORS = ("Scan ", "FileScan", "WriteFiles")


@dataclass(frozen=True, slots=True)
class SqlExecution:
    """One execution of a plan, and its jobs. `metrics` has the sums of the metrics about files."""

    id: int
    description: str
    jobs: frozenset[int]
    metrics: Mapping[str, float]

    @classmethod
    def read(cls, answer: Json) -> Self:
        sums: dict[str, float] = {}
        for metric in (metric for node in answer.get("nodes") or () for metric in node["metrics"]):
            if metric["name"] in FILE_METRICS:
                sums[metric["name"]] = sums.get(metric["name"], 0.0) + amount(str(metric["value"]))
        jobs = (job for kind in _JOBS for job in answer.get(kind) or ())
        return cls(int(answer["id"]), str(answer.get("description") or ""), frozenset(map(int, jobs)), sums)


def describes(description: str, run: str, batch: int) -> bool:
    """Whether Spark gave this description to the batch."""
    return f"\nrunId = {run}\n" in description and description.endswith(f"\nbatch = {batch}")


def amount(text: str) -> float:
    """From `1,000` or `10.6 KiB`, as Spark writes a metric; the last line if it has statistics above."""
    match = _NUMBER.match(text.rpartition("\n")[2])
    return float(match[1].replace(",", "")) * _UNITS[match[2]] if match else NAN


def file_sample(executions: Iterable[Mapping[str, float]]) -> FileSample:
    """The sums over the executions of a batch; unknown if none has the metric."""
    sums: dict[str, float] = {}
    for metrics in executions:
        for name, value in metrics.items():
            sums[name] = sums.get(name, 0.0) + value
    return FileSample(*(sums.get(name, NAN) for name in FILE_METRICS))


def handles_files(graphs: Iterable[StageGraph | None]) -> bool:
    """Whether an operator of these stages reads or writes files."""
    return any(
        operator.name.startswith(_FILE_OPERATORS) and operator.name != _RDD_SCAN
        for graph in graphs
        if graph is not None
        for operator in graph.operators
    )


class SqlBook:
    """Executions are numbered. It reads each one once, and remembers those of batches that have not been requested."""

    def __init__(self, status: StatusSource) -> None:
        self._status = status
        self._next: int | None = None
        self._executions: dict[int, SqlExecution] = {}

    def files(self, run: str, batch: int, jobs: Collection[int]) -> FileSample:
        """The files that a batch with these jobs read and wrote. Unknown for the first requested batch, and after a
        gap.
        """
        if self._next is None:
            self._next = 1 + self._status.newest_sql()
            return FileSample()
        for _ in range(_MOST_READ):
            execution = self._status.sql(self._next, SqlExecution.read)
            if execution is None:
                break
            self._next += 1
            self._executions[execution.id] = execution
        else:
            self._next = None
        mine = [
            each
            for each in self._executions.values()
            if each.jobs & set(jobs) or describes(each.description, run, batch)
        ]
        if not mine:
            self._next = None  # Spark has forgotten the next number: look for the newest one again
        for old in list(self._executions)[:-_KEPT]:
            del self._executions[old]
        return file_sample(each.metrics for each in mine)
