"""Executors of a real cluster: up, down and replaced, as Spark's scheduler then has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.executors import (
    Executors,
    ExecutorsError,
    at_once,
    hosts_to_avoid,
    whom_to_retire,
)
from homeostat.spark.act.scheduler import ExecutorInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WaitUntil = Callable[[Callable[[], bool], str], None]
LIMIT_S = 120.0


def executor(id: str, host: str, since_s: float) -> ExecutorInfo:
    return ExecutorInfo(id, host, 1, since_s)


def test_the_newest_of_the_fullest_host_go_first() -> None:
    executors = [executor("0", "a", 1.0), executor("1", "b", 2.0), executor("2", "b", 3.0), executor("3", "c", 4.0)]
    assert whom_to_retire(executors, 1) == ("2",)
    assert whom_to_retire(executors, 2) == ("2", "3")
    assert whom_to_retire(executors, 9) == ("2", "3", "1", "0")
    assert whom_to_retire(executors, 0) == ()


def test_executors_that_came_at_once_go_by_number() -> None:
    assert whom_to_retire([executor("9", "a", 1.0), executor("10", "a", 1.0)], 1) == ("10",)


def test_the_host_of_a_replaced_one_is_avoided_and_one_that_lost_most_of_them() -> None:
    executors = [executor(str(number), host, 1.0) for number, host in enumerate("abc")]
    leaving = executors[1:2]
    assert hosts_to_avoid(leaving, executors, Counter("b")) == {"b"}
    assert hosts_to_avoid(leaving, executors, Counter("ab")) == {"b"}, "one slow process says nothing of its host"
    assert hosts_to_avoid(leaving, executors, Counter("aab")) == {"a", "b"}
    assert hosts_to_avoid(leaving, executors, Counter("aabbc")) == {"b"}
    assert hosts_to_avoid(leaving, executors[:2], Counter("aab")) == {"b"}, "a place is needed"


@pytest.fixture(scope="module")
def executors(spark: SparkSession) -> Iterator[Executors]:
    steered = Executors(spark)
    steered.take_over(2)
    yield steered
    settle(steered, 2)


def settle(executors: Executors, count: int) -> None:
    if len(executors.alive()) > count:
        executors.shrink(count, batch_ends=at_once, deadline=Deadline.after(LIMIT_S))
    else:
        executors.grow(count, Deadline.after(LIMIT_S))


def run_a_job(spark: SparkSession, tasks: int) -> None:
    assert spark.sparkContext.parallelize(range(tasks), tasks).map(lambda number: number * 2).count() == tasks


def test_spark_itself_no_longer_allocates(executors: Executors) -> None:
    assert not executors.scheduler.allocates()


def test_up_and_down_and_the_number_stays(executors: Executors, spark: SparkSession) -> None:
    settle(executors, 2)
    before = executors.ids()
    fresh = executors.grow(3, Deadline.after(LIMIT_S))
    assert len(fresh) == 1
    assert executors.ids() == before | fresh
    run_a_job(spark, tasks=12)
    executors.shrink(2, batch_ends=at_once, deadline=Deadline.after(LIMIT_S))
    left = executors.ids()
    assert len(left) == 2
    # Spark would have started another one by the time that this has run, had the target not gone down.
    run_a_job(spark, tasks=12)
    assert executors.ids() == left


def test_a_drained_executor_gets_no_more_tasks_but_stays_until_it_is_quiet(
    executors: Executors, spark: SparkSession
) -> None:
    settle(executors, 2)
    drained, other = (info.id for info in executors.alive())
    registrations: list[frozenset[str]] = []

    def quiet() -> bool:
        registrations.append(executors.scheduler.registered_ids())
        if len(registrations) < 3:
            run_a_job(spark, tasks=2)
        return len(registrations) >= 3

    executors.request(1)
    executors.retire([drained], lambda: quiet, Deadline.after(LIMIT_S))
    assert all(drained in registered for registered in registrations)
    assert executors.ids() == {other}
    settle(executors, 2)


def test_a_replaced_executor_makes_way_for_one_elsewhere(executors: Executors) -> None:
    settle(executors, 2)
    slow, other = executors.alive()
    drained_at: list[frozenset[str]] = []

    def batch_ends() -> Callable[[], bool]:
        drained_at.append(executors.scheduler.registered_ids() - executors.ids())
        return lambda: True

    remark = executors.replace([slow.id], batch_ends, Deadline.after(LIMIT_S), full=False)
    # Only a batch that began after the drain is free of what goes, one too many on the slow host included.
    assert drained_at
    assert all(slow.id in drained for drained in drained_at)
    executors.see_them_gone()
    executors.trim(at_once, Deadline.after(LIMIT_S))
    now = executors.alive()
    assert executors.scheduler.registered_ids() == executors.ids()
    assert remark == ""
    assert slow.id in executors.retired.ids
    assert slow.id not in executors.ids()
    assert other.id in executors.ids()
    assert len(now) == 2 == executors.target
    assert all(info.host != slow.host for info in now if info.id != other.id)


def test_on_a_full_cluster_the_old_one_goes_first(executors: Executors) -> None:
    settle(executors, 2)
    slow = executors.alive()[0]
    executors.replace([slow.id], at_once, Deadline.after(LIMIT_S), full=True)
    assert slow.id not in executors.ids()
    assert len(executors.alive()) == 2


class AtMostTwo(Executors):
    """A cluster that is shared with others, and has no place for a third."""

    requested_counts: list[int]

    def request(self, count: int) -> None:
        self.requested_counts.append(count)
        super().request(min(count, 2))
        self.target = count


def test_where_the_cluster_gave_no_more_the_old_one_goes_first(executors: Executors, spark: SparkSession) -> None:
    """Nobody waits again for a third one that does not come, while two have to do the work."""
    settle(executors, 2)
    shared = AtMostTwo(spark)
    shared.requested_counts = []
    shared.take_over(2)
    with pytest.raises(ExecutorsError, match="2 of 3 executors are up"):
        shared.grow(3, Deadline.after(1.0))
    shared.requested_counts.clear()
    slow = shared.alive()[0]
    shared.replace([slow.id], at_once, Deadline.after(LIMIT_S), full=False)
    shared.see_them_gone()
    assert set(shared.requested_counts) == {2}
    assert slow.id not in shared.ids()
    assert len(shared.alive()) == 2


def test_one_that_is_not_there_is_retired_already(executors: Executors) -> None:
    before = executors.ids()
    assert executors.replace(["nobody"], at_once, Deadline.after(LIMIT_S), full=False) == ""
    assert "nobody" in executors.retired.ids
    assert executors.ids() == before


def test_what_comes_too_late_goes_again(executors: Executors, wait_until: WaitUntil) -> None:
    settle(executors, 2)
    before = executors.ids()
    with pytest.raises(ExecutorsError, match="2 of 4 executors are up"):
        executors.grow(4, Deadline.after(0.3))
    assert executors.target == 2
    wait_until(lambda: len(executors.alive()) > 2, "an executor came too late")

    def trimmed() -> bool:
        executors.trim(at_once, Deadline.after(LIMIT_S))
        return executors.ids() == before

    wait_until(trimmed, "the late ones are gone")
