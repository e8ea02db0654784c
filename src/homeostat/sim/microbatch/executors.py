"""The executors of a simulated cluster: they start, drain, leave, crash, and are replaced elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from homeostat.sim.faults import Faults
from homeostat.sim.microbatch.task_scheduling import Slot
from homeostat.sim.scenario.spec import FaultSpec, MicrobatchSpec


@dataclass(slots=True, eq=False)
class Executor:
    """A process on a host, up from `up_s` on. A draining executor takes no new tasks and leaves when the batch ends."""

    number: int
    host: str
    up_s: float
    fresh: bool = True
    draining: bool = False
    stands_in_for: str = ""

    @property
    def id(self) -> str:
        return f"exec-{self.number}"


class Executors:
    """Brings the cluster to `target` executors, without the retired ones, as far as the cluster grants them."""

    def __init__(self, spec: MicrobatchSpec, faults: Faults, started: Callable[[Executor], None]) -> None:
        """`started` is called with each executor that is requested."""
        self._spec = spec
        self._faults = faults
        self._started = started
        self._slow: list[tuple[FaultSpec, int]] = []
        self._hosts_used = 0
        self._count = 0
        self.target = spec.executors
        self.members: list[Executor] = []
        self._dead: list[Executor] = []
        self.asked_to_go: set[str] = set()
        for _ in range(spec.executors):
            self._start(0.0)

    def up(self, now_s: float) -> list[Executor]:
        return [executor for executor in self.members if executor.up_s <= now_s]

    def usable(self, now_s: float) -> list[Executor]:
        """The executors that take tasks. Draining ones are among them only if there are no others."""
        up = self.up(now_s)
        return [executor for executor in up if not executor.draining] or up

    def free_slots(
        self, busy_until_s: Mapping[int, list[float]], earliest_s: float, turn: int, now_s: float
    ) -> list[Slot]:
        """One slot of each executor in turn, so that few tasks spread over many executors.

        Which executor comes first changes with the `turn`.
        """
        usable = self.usable(now_s)
        first = turn % len(usable) if usable else 0
        columns = []
        for executor in usable[first:] + usable[:first]:
            slow = self._slowness(executor, now_s) / self._faults.cpu_left(executor.host, now_s)
            warm_up = self._spec.warm_up
            factors = (slow * warm_up, 1.0) if executor.fresh else (slow, warm_up)
            busy = busy_until_s.get(executor.number, [])
            free = [earliest_s] * (self._spec.slots - len(busy))
            times = sorted(max(free_s, earliest_s) for free_s in [*busy, *free])
            columns.append([Slot(executor.number, free_s, *factors) for free_s in times])
        return [slot for row in zip(*columns, strict=True) for slot in row]

    def slow_down(self, fault: FaultSpec, now_s: float) -> None:
        """The fault hits one executor, for as long as that executor lives."""
        candidates = self.up(now_s) or self.members
        self._slow.append((fault, candidates[fault.instance % len(candidates)].number))

    def faulty(self, now_s: float) -> frozenset[str]:
        crowded_hosts = {fault.host for fault in self._faults.active("contention", now_s)}
        slow = [e for e in self.up(now_s) if self._slowness(e, now_s) > 1 or e.host in crowded_hosts]
        return frozenset(executor.id for executor in slow + self.crashed_executors(now_s))

    def crashed_executors(self, now_s: float) -> list[Executor]:
        """The executors that crashed and whose replacement is not up yet."""
        awaited_ids = {e.stands_in_for for e in self.members if e.up_s > now_s}
        return [executor for executor in self._dead if executor.id in awaited_ids]

    def retired_ids(self) -> frozenset[str]:
        """The ids of retired executors that have ended, or never existed."""
        return frozenset(self.asked_to_go - {executor.id for executor in self.members})

    def has_settled(self, now_s: float) -> bool:
        leaving = any(executor.draining or self._is_unwanted(executor) for executor in self.members)
        return not leaving and len(self.up(now_s)) == self.target

    def settle(self, now_s: float) -> None:
        """Start, drain or cancel executors, as far as possible now. Calling it again changes nothing."""
        staying = [e for e in self.members if not e.draining and not self._is_unwanted(e)]
        newest_first = sorted(staying, key=lambda e: (e.up_s > now_s, e.number), reverse=True)
        for executor in newest_first[: max(0, len(staying) - self.target)]:
            self._let_go(executor, now_s)
        for _ in range(self.target - len(staying)):
            if len(self.members) < self._spec.grant_limit:
                self._start(now_s + self._spec.executor_start_s)
        self._drain_unwanted(now_s)

    def remove_drained(self, now_s: float) -> None:
        """Remove the draining executors. Call this between batches, when no task runs on them."""
        self.members = [executor for executor in self.members if not executor.draining]
        self.settle(now_s)

    def call_off(self, target: int, workers: Iterable[str], now_s: float) -> None:
        """Undo a change that took too long. Executors that were granted stay."""
        self.target = target
        self.asked_to_go -= set(workers) & {executor.id for executor in self.members}
        for executor in self.members:
            executor.draining = False
        self.settle(now_s)

    def crash(self, index: int, now_s: float, back_s: float) -> Executor | None:
        """Kill an executor that is up. The cluster replaces it at `back_s`."""
        up = self.up(now_s)
        if not up:
            return None
        lost = up[index % len(up)]
        self.members.remove(lost)
        self._dead.append(lost)
        if not lost.draining and not self._is_unwanted(lost):
            self._start(back_s, stands_in_for=lost.id)
        self.settle(now_s)
        return lost

    def _slowness(self, executor: Executor, now_s: float) -> float:
        factor = self._faults.host_factor(executor.host, now_s)
        for fault, number in self._slow:
            if number == executor.number and now_s < fault.until_s:
                factor *= fault.factor
        return factor

    def _is_unwanted(self, executor: Executor) -> bool:
        return bool(self.asked_to_go) and executor.id in self.asked_to_go

    def _drain_unwanted(self, now_s: float) -> None:
        unwanted_executors = [executor for executor in self.members if self._is_unwanted(executor)]
        staying = [e for e in self.members if not e.draining and not self._is_unwanted(e)]
        are_replaced = sum(executor.up_s <= now_s for executor in staying) >= self.target
        # If the cluster grants no more executors, the old ones must leave before the new ones come.
        making_room = self.target - len(staying) if len(self.members) >= self._spec.grant_limit else 0
        for executor in unwanted_executors if are_replaced else unwanted_executors[: max(0, making_room)]:
            self._let_go(executor, now_s)

    def _let_go(self, executor: Executor, now_s: float) -> None:
        if executor.up_s > now_s:
            self.members.remove(executor)
        else:
            executor.draining = True

    def _start(self, up_s: float, stands_in_for: str = "") -> None:
        shunned_hosts = {executor.host for executor in self.members if self._is_unwanted(executor)}
        for _ in range(self._spec.hosts):
            host = f"host-{self._hosts_used % self._spec.hosts}"
            self._hosts_used += 1
            if host not in shunned_hosts:
                break
        executor = Executor(self._count, host, up_s, stands_in_for=stands_in_for)
        self._count += 1
        self.members.append(executor)
        self._started(executor)
