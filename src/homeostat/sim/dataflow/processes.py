"""The processes that run the instances of a dataflow: their names, their hosts, their replacements."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from homeostat.core.observation import IntArray


class Processes:
    """One process per instance, named `component-instance#generation`. No name is ever used twice."""

    def __init__(self, parallelism: Mapping[str, int], hosts: int) -> None:
        self.host_names = tuple(f"host-{number}" for number in range(hosts))
        self._on_host = [0] * hosts
        self._generations: dict[str, list[int]] = {name: [] for name in parallelism}
        self._hosts: dict[str, list[int]] = {name: [] for name in parallelism}
        for component, count in parallelism.items():
            self.resize(component, count)

    def resize(self, component: str, count: int) -> None:
        """Instances below `count` keep their process. New ones go to the hosts with the fewest processes."""
        generations, hosts = self._generations[component], self._hosts[component]
        for host in hosts[count:]:
            self._on_host[host] -= 1
        del hosts[count:]
        for instance in range(len(hosts), count):
            if instance < len(generations):
                generations[instance] += 1
            else:
                generations.append(0)
            hosts.append(self._place())

    def replace(self, worker: str) -> None:
        """Start the next generation, on another host if possible. Ignores a worker that does not exist."""
        place = self.find(worker)
        if place is None:
            return
        component, instance = place
        old = self._hosts[component][instance]
        self._on_host[old] -= 1
        self._generations[component][instance] += 1
        self._hosts[component][instance] = self._place(avoid=old)

    def find(self, worker: str) -> tuple[str, int] | None:
        """The component and instance that this worker runs now; None if it does not exist."""
        name, _, generation = worker.rpartition("#")
        component, _, number = name.rpartition("-")
        if not (number.isdecimal() and generation.isdecimal()):
            return None
        instance = int(number)
        exists = instance < self.count(component) and self.id(component, instance) == worker
        return (component, instance) if exists else None

    def count(self, component: str) -> int:
        return len(self._hosts.get(component, ()))

    def id(self, component: str, instance: int) -> str:
        return f"{component}-{instance}#{self._generations[component][instance]}"

    def ids(self, component: str) -> list[str]:
        return [self.id(component, instance) for instance in range(self.count(component))]

    def hosts(self, component: str) -> IntArray:
        """The number of the host of each instance."""
        return np.array(self._hosts[component], dtype=np.int64)

    def _place(self, avoid: int = -1) -> int:
        candidates = [host for host in range(len(self._on_host)) if host != avoid] or [avoid]
        host = min(candidates, key=self._on_host.__getitem__)
        self._on_host[host] += 1
        return host
