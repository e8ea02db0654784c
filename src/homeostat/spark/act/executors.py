"""The executors of an application: add, drain, replace and remove them without a restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from homeostat.core.errors import HomeostatError
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.held_up_batch import HeldUpBatch
from homeostat.spark.act.recent_ids import RecentIds
from homeostat.spark.act.scheduler import ExecutorInfo, Scheduler

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Called when a drain begins. The function that it returns tells whether the batches that were running then have ended.
BatchEnds = Callable[[], Callable[[], bool]]

# A choice, far longer than necessary: Spark's allocation thread ends within one of its rounds of a tenth of a second.
_TAKE_OVER_S = 30.0
# A worker gives a process ten seconds to end by itself; a busy machine needs several times as long.
_KILL_S = 60.0
# How many sizes of a request to try, each larger by one, until enough executors are on another host.
_REQUESTS_TRIED = 3
# Executors requested together start within a few seconds of each other.
_TOGETHER_S = 5.0
# How many hosts with replaced executors are remembered. A choice: more than a cluster has, unless each pod is a host.
_HOSTS_KEPT = 1_000


class ExecutorsError(HomeostatError):
    """The cluster did not carry out a request completely. The message says how far it got."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A request for more executors: the number to reach, and the ids and the target before the request."""

    count: int
    before: frozenset[str]
    old_target: int


def at_once() -> Callable[[], bool]:
    """For callers without a batch to wait for."""
    return lambda: True


def whom_to_retire(executors: Sequence[ExecutorInfo], count: int) -> tuple[str, ...]:
    """The newest executors of the fullest hosts, so that no host loses all of its executors needlessly."""
    staying = list(executors)
    leaving: list[str] = []
    for _ in range(min(count, len(staying))):
        on_host = Counter(executor.host for executor in staying)
        first = max(staying, key=lambda executor: (on_host[executor.host], executor.since_s, executor.number))
        staying.remove(first)
        leaving.append(first.id)
    return tuple(leaving)


def hosts_to_avoid(
    leaving: Sequence[ExecutorInfo], executors: Sequence[ExecutorInfo], replaced_on: Counter[str]
) -> frozenset[str]:
    """The hosts of the leaving executors. A host with at least two replacements so far, and more than half of all, is
    added, unless no other host is left."""
    left_hosts = frozenset(executor.host for executor in leaving)
    bad_hosts = {host for host, times in replaced_on.items() if 2 <= times > replaced_on.total() / 2}
    return left_hosts if {executor.host for executor in executors} <= left_hosts | bad_hosts else left_hosts | bad_hosts


class Executors:
    """Controls the number of executors. It waits for every change until the scheduler has registered it."""

    def __init__(self, spark: SparkSession) -> None:
        self.scheduler = Scheduler(spark)
        self._held_up_batch = HeldUpBatch(spark)
        self.retired = RecentIds()
        # Executors that a command started or ended. The loop is notified if Spark starts or loses others.
        self.started, self.ended = RecentIds(), RecentIds()
        self.target = 0
        # How many the cluster granted when it last refused to grant more. It may grant more later.
        self._ceiling: int | None = None
        self._replaced_on: Counter[str] = Counter()
        self._killed: frozenset[str] = frozenset()
        # Draining executors, each with a function that tells whether the batch that may need them has ended.
        self._surplus: list[tuple[frozenset[str], Callable[[], bool]]] = []

    def take_over(self, count: int) -> None:
        """Stop Spark's own dynamic allocation, and keep this many executors from now on."""
        self.scheduler.stop_dynamic_allocation()
        if not Deadline.after(_TAKE_OVER_S).wait_until(lambda: not self.scheduler.allocates()):
            raise ExecutorsError(
                "Spark's dynamic allocation did not stop",
                fix="set spark.dynamicAllocation.enabled to false, or run with --mode observe",
            )
        self.request(count)

    @property
    def is_managed(self) -> bool:
        """Whether Homeostat decides how many there are. Until then Spark does."""
        return self.target > 0

    def hold(self) -> None:
        """Call this before the first change. It takes control of the executors and keeps their number."""
        if not self.is_managed:
            self.take_over(max(1, len(self.alive())))

    def alive(self) -> list[ExecutorInfo]:
        """The executors that take tasks, oldest first."""
        return self.scheduler.active()

    def ids(self) -> frozenset[str]:
        return frozenset(executor.id for executor in self.alive())

    def existed_at(self, ids: frozenset[str], moment_s: float) -> frozenset[str]:
        """The ids without executors that started later. After a crash Spark reuses ids, and an old command refers to
        old executors."""
        return ids - {executor.id for executor in self.alive() if executor.since_s > moment_s}

    def request(self, count: int) -> None:
        """Aim at this many executors. Spark starts missing ones and kills none."""
        self.scheduler.request(count)
        self.target = count

    def kill(self, ids: Collection[str]) -> None:
        """End these processes; `see_them_gone` waits for that."""
        self.scheduler.kill(ids)
        self._killed |= frozenset(ids)

    def grow(self, count: int, deadline: Deadline) -> frozenset[str]:
        """Start executors until there are `count`. Returns the new ids. If too few start, those stay."""
        return self.finish_growth(self.begin_growth(count), deadline)

    def begin_growth(self, count: int) -> Growth:
        """Request executors until there are `count`, and do not wait for them: they take seconds to start."""
        growth = Growth(count, self.ids(), self.target)
        self.request(count)
        return growth

    def finish_growth(self, growth: Growth, deadline: Deadline) -> frozenset[str]:
        """Wait for the requested executors. Returns the new ids."""
        if not deadline.wait_until(lambda: len(self.alive()) >= growth.count):
            up = len(self.alive())
            self._ceiling = up
            self.request(max(growth.old_target, min(up, growth.count)))
            raise ExecutorsError(f"{up} of {growth.count} executors are up: the cluster grants no more")
        self._ceiling = None
        fresh = self.ids() - growth.before
        self.started.add(fresh)
        return fresh

    def shrink(self, count: int, batch_ends: BatchEnds, deadline: Deadline) -> None:
        """Remove surplus executors when no batch needs their data any more."""
        executors = self.alive()
        self.request(count)
        surplus = whom_to_retire(executors, len(executors) - count)
        self.ended.add(surplus)
        self.retire(surplus, batch_ends, deadline)

    def retire(self, ids: Collection[str], batch_ends: BatchEnds, deadline: Deadline) -> None:
        """Drain, wait for the end of the batch that may use them, and kill. Kill anyway when the time is up."""
        self._kill_once(self._drain(ids, batch_ends), ids, deadline)
        self.see_them_gone()

    def _drain(self, ids: Collection[str], batch_ends: BatchEnds) -> Callable[[], bool]:
        """Returns a function that tells whether the batch that may use them has ended."""
        self.scheduler.decommission(ids)
        return batch_ends()

    def _kill_once(
        self, has_drained: Callable[[], bool], ids: Collection[str], deadline: Deadline, pace: float = 1.0
    ) -> None:
        deadline.wait_until(lambda: self._went_early(ids, pace) or (has_drained() and not self.scheduler.busy(ids)))
        self.kill(ids)

    def _went_early(self, ids: Collection[str], pace: float) -> bool:
        """Kill these executors in the middle of a batch if it ends sooner when others repeat their tasks. `pace` is
        their time for a task divided by that of the others. Returns whether they were killed, now or earlier."""
        if self._killed >= frozenset(ids):
            return True
        if not self._held_up_batch.ends_sooner_without(ids, pace):
            return False
        self.kill(ids)
        return True

    def see_them_gone(self) -> None:
        """Wait until the scheduler and the REST API no longer list the killed executors."""
        killed_ids, self._killed = self._killed, frozenset()
        if not Deadline.after(_KILL_S).wait_until(lambda: not self.scheduler.present() & killed_ids):
            survivors = ", ".join(sorted(self.scheduler.present() & killed_ids))
            raise ExecutorsError(f"executor {survivors} is still running {_KILL_S:g} s after it was killed")

    def replace(self, ids: Collection[str], batch_ends: BatchEnds, deadline: Deadline, *, full: bool) -> str:
        """Start new executors in place of these, on other hosts if possible. Returns a warning if it was not.

        The new ones are requested first, unless the cluster is `full` or earlier granted no more. Meanwhile the old
        ones drain, because they would only delay the batches. They are killed when two conditions hold: the new ones
        are up or half of the time has passed, and the batch has ended or would end sooner without them. A slow process
        can take long to end: `see_them_gone` waits for that while the new ones work.
        """
        count, before = self.target, self.alive()
        on_their_way = max(0, count - len(before))
        leaving = [executor for executor in before if executor.id in ids]
        if not leaving:
            self.retired.add(ids)
            return ""
        self._replaced_on.update(executor.host for executor in leaving)
        for host in list(self._replaced_on)[:-_HOSTS_KEPT]:
            del self._replaced_on[host]
        hosts = hosts_to_avoid(leaving, before, self._replaced_on)
        going = frozenset(executor.id for executor in leaving)
        self.ended.add(going)
        full = full or (self._ceiling is not None and len(before) >= self._ceiling)
        if not full:
            self.request(count + len(leaving))
        pace = self._held_up_batch.pace(going)
        has_drained = self._drain(going, batch_ends)
        needed_count = len(leaving) + on_their_way
        if not full:
            until = deadline.at_most(deadline.left_s / 2)
            gone = partial(self._went_early, going, pace)
            self._bring_up_elsewhere(before, needed_count, hosts, until, lambda: len(going) if gone() else 0)
            self._ceiling = None if self._besides(before) else len(before)
        self.request(count)
        fresh = sorted(self._besides(before), key=lambda executor: executor.host not in hosts)
        self._drain_surplus(fresh[: max(0, len(fresh) - needed_count)], batch_ends)
        self._kill_once(has_drained, going, deadline, pace)
        self.retired.add(ids)
        if not deadline.wait_until(lambda: len(self.alive()) >= count):
            raise ExecutorsError(f"the old executors are gone, but only {len(self.alive())} of {count} are up")
        fresh = self._besides(before)
        self.started.add(executor.id for executor in fresh)
        if sum(executor.host not in hosts for executor in fresh) >= len(leaving):
            return ""
        again = ", ".join(sorted({executor.host for executor in fresh} & hosts))
        return f"the new executor is also on {again}. What to do: remove {again} from the cluster, or add another host"

    def _drain_surplus(self, executors: Sequence[ExecutorInfo], batch_ends: BatchEnds) -> None:
        """Surplus executors take no more tasks. `trim` ends them later, so that the command does not wait for it."""
        if executors:
            surplus = frozenset(executor.id for executor in executors)
            self.ended.add(surplus)
            self._surplus.append((surplus, self._drain(surplus, batch_ends)))

    def trim(self, batch_ends: BatchEnds, deadline: Deadline) -> None:
        """End executors that started on the wrong host, or too late for a request that was withdrawn."""
        while self._surplus:
            surplus, has_drained = self._surplus.pop()
            self._kill_once(has_drained, surplus, deadline)
            self.see_them_gone()
        if late := self.late():
            self._ceiling = None
            self.ended.add(late)
            self.retire(late, batch_ends, deadline)

    def staying(self) -> int:
        """The number of executors, without those that started too late and will be ended."""
        return min(len(self.alive()), self.target) if self.is_managed else len(self.alive())

    def late(self) -> frozenset[str]:
        """The ids of the executors above the target number: the newest ones."""
        if not self.is_managed:
            return frozenset()
        executors = sorted(self.alive(), key=lambda executor: (executor.since_s, executor.number))
        return frozenset(executor.id for executor in executors[self.target :])

    def _bring_up_elsewhere(
        self,
        before: Sequence[ExecutorInfo],
        needed_count: int,
        hosts: Collection[str],
        deadline: Deadline,
        gone_count: Callable[[], int],
    ) -> None:
        """Request more than needed until enough are on other hosts, because Spark cannot avoid a host.

        If the next one will likely be on a bad host, request one more at once: two start in the time of one.
        `gone_count` returns how many of the old executors have already ended. The request is smaller by that number,
        because Spark would otherwise start others in their place.
        """
        on_host = Counter(executor.host for executor in before)
        likely = len(on_host) > 1 and min(on_host.values()) >= min(on_host[host] for host in hosts)

        def elsewhere() -> bool:
            return sum(executor.host not in hosts for executor in self._besides(before)) >= needed_count

        def all_up(count: int) -> bool:
            return len(self._besides(before)) >= count

        def enough(count: int) -> bool:
            target = len(before) + count - gone_count()
            if target != self.target:
                self.request(target)
            return elsewhere() or all_up(count)

        for count in range(needed_count + int(likely), needed_count + _REQUESTS_TRIED):
            if not deadline.wait_until(partial(enough, count)):
                return
            if elsewhere():
                # Wait for those that start a little later, so that they do not turn up as surplus afterwards.
                deadline.at_most(_TOGETHER_S).wait_until(partial(all_up, count))
                return

    def _besides(self, others: Sequence[ExecutorInfo]) -> list[ExecutorInfo]:
        ids = {executor.id for executor in others}
        return [executor for executor in self.alive() if executor.id not in ids]
