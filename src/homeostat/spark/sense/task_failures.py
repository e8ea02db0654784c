"""The attempts at tasks that failed in a batch, by component, partition and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from homeostat.core.observation import TaskFailure
from homeostat.spark.sense.stage_run import StageRun

# A choice: enough to see which partitions fail and why, even if thousands of tasks of a stage fail.
MOST_FAILURES = 50


def task_failures(runs: Mapping[str, Sequence[StageRun]]) -> tuple[tuple[TaskFailure, ...], int]:
    """The most frequent failures, and the number of other failed attempts."""
    counts = Counter(
        (component, failure.index, failure.reason)
        for component, stages in runs.items()
        for stage in stages
        for failure in stage.failures
    )
    listed = counts.most_common(MOST_FAILURES)
    left_out = counts.total() - sum(count for _, count in listed)
    failures = (TaskFailure(component, index, reason, count) for (component, index, reason), count in listed)
    return tuple(failures), left_out
