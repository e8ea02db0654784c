"""The executors of an application: seen, asked for, drained and ended, without a restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from homeostat.core.errors import HomeostatError
from homeostat.spark.act.deadline import Deadline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Asked once a drain has begun: gives what tells whether the batches then under way have ended.
BatchEnds = Callable[[], Callable[[], bool]]

_ALLOCATION_THREAD = "spark-dynamic-executor-allocation"
_TAKE_OVER_S = 30.0
# A worker gives a process ten seconds to end by itself.
_KILL_S = 60.0
_PLACES_TRIED = 3
_TOGETHER_S = 5.0


class ExecutorsError(HomeostatError):
    """The cluster did not do what it was asked for; the message says how far it got."""


@dataclass(frozen=True, slots=True)
class ExecutorInfo:
    id: str
    host: str
    cores: int
    since_s: float


def at_once() -> Callable[[], bool]:
    """The end of a batch, for when none is under way."""
    return lambda: True


def whom_to_retire(executors: Sequence[ExecutorInfo], count: int) -> tuple[str, ...]:
    """The newest ones of the fullest hosts, so that no host loses all of its executors without need."""
    staying = list(executors)
    leaving: list[str] = []
    for _ in range(min(count, len(staying))):
        on_host = Counter(executor.host for executor in staying)
        first = max(staying, key=lambda e: (on_host[e.host], e.since_s, _number(e.id)))
        staying.remove(first)
        leaving.append(first.id)
    return tuple(leaving)


def hosts_to_avoid(
    leaving: Sequence[ExecutorInfo], executors: Sequence[ExecutorInfo], replaced_on: Counter[str]
) -> frozenset[str]:
    """Those of the leaving ones, and one from which most were taken so far, two at least, if there is yet another."""
    left = frozenset(executor.host for executor in leaving)
    bad = {host for host, times in replaced_on.items() if 2 <= times > replaced_on.total() / 2}
    return left if {executor.host for executor in executors} <= left | bad else left | bad


class Executors:
    """Steers the number of executors through the scheduler's own calls.

    A call's return value is no evidence: every change is waited for in what the scheduler has registered.
    """

    def __init__(self, spark: SparkSession) -> None:
        context = spark.sparkContext
        self._context: Any = context._jsc.sc()
        self._jvm: Any = context._jvm
        self._backend: Any = self._context.schedulerBackend()
        self.retired: frozenset[str] = frozenset()
        # By order: others that come or go are news.
        self.brought: frozenset[str] = frozenset()
        self.ended: frozenset[str] = frozenset()
        self.target = 0
        # Where the cluster gave no more when it was last asked; it may give more again one day.
        self._ceiling: int | None = None
        self._replaced_on: Counter[str] = Counter()
        self._killed: frozenset[str] = frozenset()
        # Drained, and what tells whether the batch that may have used them has ended.
        self._surplus: list[tuple[frozenset[str], Callable[[], bool]]] = []

    def take_over(self, count: int) -> None:
        """Set Spark's own allocation manager aside, and hold this many executors from now on."""
        manager = self._context.executorAllocationManager()
        if manager.isDefined():
            manager.get().stop()
            if not Deadline.after(_TAKE_OVER_S).wait_until(lambda: not self._spark_allocates()):
                raise ExecutorsError(
                    "Spark's own dynamic allocation does not stop",
                    fix="set spark.dynamicAllocation.enabled to false, or run with --mode observe",
                )
        self.request(count)

    @property
    def held(self) -> bool:
        """Whether they are ours to count; until then they are left to Spark."""
        return self.target > 0

    def hold(self) -> None:
        """Before the first change: as many as there are, unless they are held already."""
        if not self.held:
            self.take_over(max(1, len(self.alive())))

    def alive(self) -> list[ExecutorInfo]:
        """Those that take tasks: registered, and neither drained nor about to be killed."""
        active = {id for id in self._registered() if self._backend.isExecutorActive(id)}
        found = [executor for executor in self._listed() if executor.id in active]
        return sorted(found, key=lambda executor: _number(executor.id))

    def ids(self) -> frozenset[str]:
        return frozenset(executor.id for executor in self.alive())

    def request(self, count: int) -> None:
        """Let the cluster manager aim at this many. It starts what is missing and kills nothing."""
        self._context.requestTotalExecutors(count, 0, self._jvm.PythonUtils.toScalaMap({}))
        self.target = count

    def decommission(self, ids: Iterable[str]) -> None:
        """No new task goes to these from now on; what runs there goes on."""
        for id in sorted(ids):
            if self._backend.isExecutorActive(id):
                why = self._jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo(
                    "retired by homeostat", self._jvm.scala.Option.empty()
                )
                self._backend.decommissionExecutor(id, why, False, False)

    def kill(self, ids: Collection[str]) -> None:
        """Let these processes end, whatever they do; `see_them_gone` waits for it."""
        self._backend.killExecutors(self._jvm.PythonUtils.toSeq(sorted(ids)), False, False, True)
        self._killed |= frozenset(ids)

    def grow(self, count: int, deadline: Deadline) -> frozenset[str]:
        """Bring up executors until there are `count`; the fresh ones' ids. What is granted stays if it is too few."""
        before, old_target = self.ids(), self.target
        self.request(count)
        if not deadline.wait_until(lambda: len(self.alive()) >= count):
            up = len(self.alive())
            self._ceiling = up
            self.request(max(old_target, min(up, count)))
            raise ExecutorsError(f"{up} of {count} executors are up: the cluster gives no more")
        self._ceiling = None
        fresh = self.ids() - before
        self.brought |= fresh
        return fresh

    def shrink(self, count: int, batch_ends: BatchEnds, deadline: Deadline) -> None:
        """Let the surplus go once nobody needs what it holds any more."""
        executors = self.alive()
        self.request(count)
        surplus = whom_to_retire(executors, len(executors) - count)
        self.ended |= frozenset(surplus)
        self.retire(surplus, batch_ends, deadline)

    def retire(self, ids: Collection[str], batch_ends: BatchEnds, deadline: Deadline) -> None:
        """Drain, wait for the batch that may have used them to end, kill; by force if the time is up."""
        self._let_go(ids, self._drain(ids, batch_ends), deadline)

    def _drain(self, ids: Collection[str], batch_ends: BatchEnds) -> Callable[[], bool]:
        """To be asked whether the batch that may have used them has ended."""
        self.decommission(ids)
        return batch_ends()

    def _let_go(self, ids: Collection[str], drained: Callable[[], bool], deadline: Deadline) -> None:
        self._kill_once(drained, ids, deadline)
        self.see_them_gone()

    def _kill_once(self, drained: Callable[[], bool], ids: Collection[str], deadline: Deadline) -> None:
        deadline.wait_until(lambda: drained() and not self._busy(ids))
        self.kill(ids)

    def end(self, ids: Collection[str]) -> None:
        self.kill(ids)
        self.see_them_gone()

    def see_them_gone(self) -> None:
        """What was killed is there no more, for everybody who asks."""
        killed, self._killed = self._killed, frozenset()
        if not Deadline.after(_KILL_S).wait_until(lambda: not self._known() & killed):
            left = ", ".join(sorted(self._known() & killed))
            raise ExecutorsError(f"executor {left} is still there {_KILL_S:g} s after it was killed")

    def replace(self, ids: Collection[str], batch_ends: BatchEnds, deadline: Deadline, *, full: bool) -> str:
        """Fresh executors in place of these, on other hosts if the cluster has any; a remark if it has none.

        Fresh ones are asked for first, unless the cluster is `full` or has given no more before. Those that leave
        would only hold up the batches until these are there: they are drained meanwhile, and killed once they are up
        or half of the time is over.
        `see_them_gone` waits for their end, which takes a slow one long, while the fresh ones work already.
        """
        count, before = self.target, self.alive()
        leaving = [executor for executor in before if executor.id in ids]
        if not leaving:
            self.retired |= frozenset(ids)
            return ""
        self._replaced_on.update(executor.host for executor in leaving)
        hosts = hosts_to_avoid(leaving, before, self._replaced_on)
        going = frozenset(executor.id for executor in leaving)
        self.ended |= going
        full = full or (self._ceiling is not None and len(before) >= self._ceiling)
        if not full:
            self.request(count + len(leaving))
        drained = self._drain(going, batch_ends)
        if not full:
            self._bring_up_elsewhere(count, before, len(leaving), hosts, deadline.at_most(deadline.left_s / 2))
            self._ceiling = None if self._besides(before) else len(before)
        self.request(count)
        fresh = sorted(self._besides(before), key=lambda executor: executor.host not in hosts)
        self._drain_surplus(fresh[: max(0, len(fresh) - len(leaving))], batch_ends)
        self._kill_once(drained, going, deadline)
        self.retired |= frozenset(ids)
        if not deadline.wait_until(lambda: len(self.alive()) >= count):
            raise ExecutorsError(f"the old ones are gone and {len(self.alive())} of {count} executors are up")
        fresh = self._besides(before)
        self.brought |= frozenset(executor.id for executor in fresh)
        if sum(executor.host not in hosts for executor in fresh) >= len(leaving):
            return ""
        again = ", ".join(sorted({executor.host for executor in fresh} & hosts))
        return f"the cluster offered no place but {again} again. What to do: take {again} out of it, or add a host"

    def _drain_surplus(self, executors: Sequence[ExecutorInfo], batch_ends: BatchEnds) -> None:
        """They take no more tasks, and nobody waits for them to go: `trim` sees to it later."""
        if executors:
            surplus = frozenset(executor.id for executor in executors)
            self.ended |= surplus
            self._surplus.append((surplus, self._drain(surplus, batch_ends)))

    def trim(self, batch_ends: BatchEnds, deadline: Deadline) -> None:
        """What came up in the wrong place, or too late for a request that was taken back, goes again."""
        while self._surplus:
            self._let_go(*self._surplus.pop(), deadline)
        if late := self.late():
            self._ceiling = None
            self.ended |= late
            self.retire(late, batch_ends, deadline)

    def staying(self) -> int:
        """How many there are, but for those that came too late and go again."""
        return min(len(self.alive()), self.target) if self.held else len(self.alive())

    def late(self) -> frozenset[str]:
        """Beyond the target: the newest, so that all is as it was before them."""
        if not self.held:
            return frozenset()
        executors = sorted(self.alive(), key=lambda executor: (executor.since_s, _number(executor.id)))
        return frozenset(executor.id for executor in executors[self.target :])

    def _bring_up_elsewhere(
        self, target: int, before: Sequence[ExecutorInfo], needed: int, hosts: Collection[str], deadline: Deadline
    ) -> None:
        """Spark cannot be told to avoid a host: ask for more than needed until enough are elsewhere.

        At once for one more where the next place is likely one of these hosts: two start in the time of one.
        """
        on_host = Counter(executor.host for executor in before)
        likely = len(on_host) > 1 and min(on_host.values()) >= min(on_host[host] for host in hosts)

        def elsewhere() -> bool:
            return sum(executor.host not in hosts for executor in self._besides(before)) >= needed

        def all_up(count: int) -> bool:
            return len(self._besides(before)) >= count

        def enough(count: int) -> bool:
            return elsewhere() or all_up(count)

        for count in range(needed + int(likely), needed + _PLACES_TRIED):
            self.request(target + count)
            if not deadline.wait_until(partial(enough, count)):
                return
            if elsewhere():
                # Others that are a little later are better awaited than found to be too many afterwards.
                deadline.at_most(_TOGETHER_S).wait_until(partial(all_up, count))
                return

    def _besides(self, known: Sequence[ExecutorInfo]) -> list[ExecutorInfo]:
        ids = {executor.id for executor in known}
        return [executor for executor in self.alive() if executor.id not in ids]

    def _registered(self) -> frozenset[str]:
        listed = str(self._backend.getExecutorIds().mkString(","))
        return frozenset(listed.split(",")) if listed else frozenset()

    def _known(self) -> frozenset[str]:
        """Registered with the scheduler, or still listed as alive by what the REST API shows."""
        return self._registered() | {executor.id for executor in self._listed()}

    def _listed(self) -> list[ExecutorInfo]:
        entries = self._context.statusStore().executorList(True).iterator()
        listed = []
        while entries.hasNext():
            entry = entries.next()
            host = str(entry.hostPort()).rpartition(":")[0] or str(entry.hostPort())
            listed.append(ExecutorInfo(entry.id(), host, entry.totalCores(), entry.addTime().getTime() / 1000))
        return listed

    def _busy(self, ids: Iterable[str]) -> bool:
        scheduler = self._context.taskScheduler()
        return any(scheduler.isExecutorBusy(id) for id in ids)

    def _spark_allocates(self) -> bool:
        threads = self._jvm.java.lang.Thread.getAllStackTraces().keySet().iterator()
        while threads.hasNext():
            if str(threads.next().getName()).startswith(_ALLOCATION_THREAD):
                return True
        return False


def _number(id: str) -> int:
    return int(id) if id.isdigit() else 0
