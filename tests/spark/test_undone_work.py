"""Work that failed is tried again until it succeeds, and its failure is reported once."""

from __future__ import annotations

from homeostat.core.events import Event, Failure
from homeostat.spark.undone_work import UndoneWork


def test_what_failed_is_tried_again_and_reported_once() -> None:
    events: list[Event] = []
    failures_left = [2]

    def work() -> None:
        if failures_left[0]:
            failures_left[0] -= 1
            raise OSError("no space left")

    undone = UndoneWork(events.append)
    undone.do("saving", work)
    for _ in range(3):
        undone.retry()
    (failure,) = events
    assert isinstance(failure, Failure)
    assert (failure.where, failure.error, failures_left) == ("saving", "no space left", [0])


def test_newer_work_of_the_same_name_replaces_older_work() -> None:
    done: list[str] = []

    def impossible() -> None:
        raise OSError

    undone = UndoneWork(lambda event: None)
    undone.do("telling", impossible)
    undone.do("telling", lambda: done.append("newer"))
    undone.retry()
    assert done == ["newer"]
