"""Detects work that fails and is repeated: attempts at tasks, and workers that are lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from homeostat.core.evidence import Evidence
from homeostat.core.findings import Symptom
from homeostat.core.observation import TaskFailure
from homeostat.core.symptoms import FAILED_ATTEMPTS, LOST_WORKERS
from homeostat.core.view import View
from homeostat.core.wording import number

# How many batches are checked: more remember failures longer, fewer forget them sooner. A choice.
_LOOK_BACK = 20
# Attempts at one partition that fail for the same reason in one batch, in several batches, before the partition is
# suspected: Spark gives up after four (spark.task.maxFailures). A choice.
_SAME_PARTITION = 2
# Seconds that losses of workers are remembered for, if that is longer: short batches are many between two losses. A
# choice: at least twice in five minutes.
_LOOK_BACK_S = 300.0
# Quiet batches after which it is over, over those of the longest pause so far, and at least so many. Smaller numbers
# call it over while it goes on. A choice: with failures at random, a pause this long is rare.
_OVER_AFTER, _LEAST_QUIET = 3.0, 5
# Severity grows with the number of batches with failures: this many make it one half. A choice.
_HALF_SEVERITY = 3.0


@dataclass(frozen=True, slots=True)
class FailedAttempts(Evidence):
    """`same_partition` is the partition that failed at least twice in one batch, for the same reason; empty if none."""

    headline: ClassVar[str] = "tasks of {where} fail"
    failures: float
    batches: float
    reason: str
    same_partition: float | None = None

    def summary(self) -> str:
        where = f" (partition {number(self.same_partition)} each time)" if self.same_partition is not None else ""
        return f"{number(self.failures)} attempts in {number(self.batches)} batches failed{where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class WorkersLost(Evidence):
    headline: ClassVar[str] = "{where} loses workers"
    lost_workers: float
    batches: float
    reason: str = ""

    def summary(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{number(self.lost_workers)} workers were lost in {number(self.batches)} batches{why}"


@dataclass(frozen=True, slots=True)
class FailedAttemptsDetector:
    """Reports components whose attempts failed in several of the latest batches."""

    # Batches with failures before they are more than an accident: one can be chance. A choice.
    least_batches: int = 2
    # The share of the failed attempts that one partition has if its rows are to blame. Where attempts fail at random,
    # some partition fails twice now and then, but the others fail as well. A choice.
    least_share: float = 0.8
    name: str = FAILED_ATTEMPTS

    def detect(self, view: View) -> Iterator[Symptom]:
        recent = view.window.observations[-_LOOK_BACK:]
        if not any(o.failures for o in recent):
            return
        for component in view.topology.names:
            failures = [f for o in recent for f in o.failures if f.component == component]
            failing = [any(f.component == component for f in o.failures) for o in recent]
            batches = sum(failing)
            repeats = Counter((f.partition, f.reason) for f in failures if f.count >= _SAME_PARTITION)
            repeated = [
                place
                for place, count in repeats.most_common(1)
                if count >= self.least_batches and _share(failures, place[0]) >= self.least_share
            ]
            if batches < self.least_batches or not _goes_on(failing):
                continue
            reason = Counter(f.reason for f in failures).most_common(1)[0][0]
            partition = float(repeated[0][0]) if repeated else None
            count = float(sum(f.count for f in failures))
            evidence = FailedAttempts(count, float(batches), reason, partition)
            instances = (int(partition),) if partition is not None else ()
            yield Symptom(FAILED_ATTEMPTS, component, batches / (batches + _HALF_SEVERITY), evidence, instances)


def _share(failures: Sequence[TaskFailure], partition: int) -> float:
    return sum(f.count for f in failures if f.partition == partition) / sum(f.count for f in failures)


def _goes_on(happened: Sequence[bool]) -> bool:
    """Whether the batches since it last happened are not many more than those between two times before."""
    places = [place for place, each in enumerate(happened) if each]
    longest = max((after - before for before, after in pairwise(places)), default=0)
    return bool(places) and len(happened) - 1 - places[-1] <= max(_OVER_AFTER * longest, _LEAST_QUIET)


@dataclass(frozen=True, slots=True)
class LostWorkersDetector:
    """Reports workers that were lost in several of the latest batches, not those that were asked to leave."""

    # Batches with a loss before executors "keep" dying. One is an accident that Spark recovers from by itself. A
    # choice.
    least_batches: int = 2
    name: str = LOST_WORKERS
    while_unsettled: ClassVar[bool] = True

    def detect(self, view: View) -> Iterator[Symptom]:
        # Each loss changes the configuration, so only the history has all of them.
        newer = int(np.count_nonzero(view.numbers.flow("at_s", len(view.history)) > view.now_s - _LOOK_BACK_S))
        recent = view.history[-max(_LOOK_BACK, newer) :]
        losses = [loss for digest in recent for loss in digest.losses]
        losing = [bool(digest.losses) for digest in recent]
        batches = sum(losing)
        if batches < self.least_batches or not _goes_on(losing):
            return
        reason = Counter(loss.reason for loss in losses).most_common(1)[0][0]
        evidence = WorkersLost(float(len(losses)), float(len(recent)), reason)
        yield Symptom(LOST_WORKERS, "", batches / (batches + _HALF_SEVERITY), evidence)
