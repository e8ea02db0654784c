"""Jobs of a batch that run no stage of the query: its sink or the function of `foreachBatch` started them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from homeostat.core.observation import JobSpan
from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.rest_answers import Job

_STREAMING_SCAN = "MicroBatchScan"
# If there are more jobs, only the longest are listed, so that an observation stays small even if a function starts jobs
# in a loop. A choice.
MOST_JOBS = 50


class BatchJobs(NamedTuple):
    """The jobs of a batch: those of the query, and the others."""

    of_query: list[Job]
    others: list[Job]


def split_jobs(jobs: Sequence[Job], graph_of: Callable[[int], StageGraph | None]) -> BatchJobs:
    """A job belongs to the query if it scans a stream, reads shuffled rows of such a job, or collects the small side of
    a join. If no operator scans a stream, as with file sources, all jobs belong to the query."""
    if len(jobs) <= 1:
        return BatchJobs(list(jobs), [])
    graphs = {job.id: [graph for stage in job.stages if (graph := graph_of(stage)) is not None] for job in jobs}
    scanning_jobs = {number for number, mine in graphs.items() if any(map(_scans, mine))}
    if not scanning_jobs:
        return BatchJobs(list(jobs), [])
    rdds = frozenset(rdd for number in scanning_jobs for graph in graphs[number] for rdd in graph.rdds)
    split = BatchJobs([], [])
    for job in jobs:
        mine = graphs[job.id]
        connected = job.id in scanning_jobs or any(graph.reads & rdds or graph.rdds & rdds for graph in mine)
        if connected:
            rdds |= frozenset(rdd for graph in mine for rdd in graph.rdds)
        (split.of_query if connected or job.broadcasts or not mine else split.others).append(job)
    return split


def job_spans(jobs: Sequence[Job], batch_began_s: float) -> tuple[JobSpan, ...]:
    """The jobs in the order in which they began; if there are too many, the longest. All times are by the driver's
    clock."""
    longest = sorted(jobs, key=lambda job: job.submitted_s - job.ended_s)[:MOST_JOBS]
    return tuple(
        JobSpan(job.submitted_s - batch_began_s, job.ended_s - batch_began_s, job.name)
        for job in sorted(longest, key=lambda job: job.submitted_s)
    )


def _scans(graph: StageGraph) -> bool:
    return any(operator.name == _STREAMING_SCAN for operator in graph.operators)
