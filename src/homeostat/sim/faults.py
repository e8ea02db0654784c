"""The faults of a scenario: what goes wrong, when, and by how much."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite, isnan
from typing import get_args

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Observation
from homeostat.sim.damage import NONSENSE, damage
from homeostat.sim.scenario.spec import FaultKind, FaultSpec


class Faults:
    """The faults of a run. If the names of the components or hosts are given, faults at others are refused."""

    def __init__(
        self,
        specs: tuple[FaultSpec, ...],
        components: Collection[str] | None = None,
        hosts: Collection[str] | None = None,
    ) -> None:
        for number, spec in enumerate(specs, start=1):
            _check(spec, f"fault {number} ({spec.kind})", components, hosts)
        self.specs = specs
        self._kinds = frozenset(spec.kind for spec in specs)

    def active(self, kind: FaultKind, t_s: float) -> tuple[FaultSpec, ...]:
        if kind not in self._kinds:
            return ()
        return tuple(s for s in self.specs if s.kind == kind and s.at_s <= t_s < s.until_s)

    def among(self, kinds: Collection[str], t_s: float) -> tuple[FaultSpec, ...]:
        """The active faults of these kinds."""
        return tuple(s for s in self.specs if s.kind in kinds and s.at_s <= t_s < s.until_s)

    def hot_share(self, component: str, t_s: float) -> float:
        """The share of the hottest key; 0 if no fault makes a key hot."""
        return max((s.share for s in self._at("hot-key", component, t_s)), default=0.0)

    def stride(self, component: str, t_s: float) -> int:
        """The number that all keys are multiples of; 0 without a hash imbalance."""
        return max((s.stride for s in self._at("hash-imbalance", component, t_s)), default=0)

    def sink_stuck(self, t_s: float, component: str = "") -> bool:
        """Whether this sink is stuck. A fault that names no component stops every sink."""
        stuck = self.active("stuck-sink", t_s)
        return any(not component or spec.component in ("", component) for spec in stuck)

    def host_factor(self, host: str, t_s: float) -> float:
        """How many times slower everything on this host is."""
        factor = 1.0
        for spec in self.active("slow-host", t_s):
            if spec.host == host:
                factor *= spec.factor
        return factor

    def cpu_left(self, host: str, t_s: float) -> float:
        """The share of this host's CPU that other processes leave."""
        left_share = 1.0
        for spec in self.active("contention", t_s):
            if spec.host in ("", host):
                left_share *= 1.0 - spec.share
        return left_share

    def next_change_s(self, t_s: float) -> float:
        """When the next fault begins or ends after `t_s`; infinity if none does."""
        times = (time for spec in self.specs for time in (spec.at_s, spec.until_s))
        return min((time for time in times if time > t_s), default=float("inf"))

    def garbles(self, t_s: float) -> bool:
        """Whether measurements are damaged at this moment."""
        return bool(self.active("metric-gap", t_s) or self.active("garbage-metrics", t_s))

    def garble(self, observation: Observation, t_s: float, rng: np.random.Generator) -> Observation:
        """The observation with a share of its measurements lost or replaced by nonsense.

        Batch number, time and workers stay as they are.
        """
        for spec in self.active("metric-gap", t_s):
            observation = damage(observation, spec, np.array([np.nan]), rng)
        for spec in self.active("garbage-metrics", t_s):
            observation = damage(observation, spec, NONSENSE, rng)
        return observation

    def _at(self, kind: FaultKind, component: str, t_s: float) -> tuple[FaultSpec, ...]:
        return tuple(s for s in self.active(kind, t_s) if s.component in ("", component))


def _check(spec: FaultSpec, where: str, components: Collection[str] | None, hosts: Collection[str] | None) -> None:
    def require(condition: bool, what: str, fix: str = "") -> None:
        if not condition:
            raise ConfigError(what, where=where, fix=fix)

    kinds = get_args(FaultKind)
    require(spec.kind in kinds, f"unknown kind of fault {spec.kind!r}", f"use one of {', '.join(kinds)}")
    require(isfinite(spec.at_s) and spec.at_s >= 0, f"at_s must be 0 or more, not {spec.at_s:g}")
    ends_later = not isnan(spec.until_s) and spec.until_s > spec.at_s
    require(ends_later, f"until_s ({spec.until_s:g}) must come after at_s ({spec.at_s:g})")
    require(isfinite(spec.factor) and spec.factor > 0, f"factor must be above 0, not {spec.factor:g}")
    require(0 <= spec.share <= 1, f"share must be between 0 and 1, not {spec.share:g}")
    require(spec.instance >= 0, f"instance must be 0 or more, not {spec.instance}")
    require(spec.stride >= 1, f"stride must be 1 or more, not {spec.stride}")
    for name in ("seconds", "row_s", "task_s", "file_s", "growth"):
        value: float = getattr(spec, name)
        require(isfinite(value) and value >= 0, f"{name} must be 0 or more, not {value:g}")
    for name in ("rows", "every_s", "attempts"):
        require(getattr(spec, name) > 0, f"{name} must be above 0, not {getattr(spec, name):g}")
    if spec.kind in ("contention", "task-failures"):
        require(spec.share < 1, f"share must be below 1, not {spec.share:g}")
    if spec.kind == "stuck-task":
        require(isfinite(spec.until_s), "a stuck-task fault needs an end", "set until_s")
    if spec.kind == "slow-host":
        require(bool(spec.host), "a slow-host fault needs a host", "set host, such as host-0")
    if components is not None and spec.component:
        names = ", ".join(components)
        require(spec.component in components, f"unknown component {spec.component!r}", f"use one of {names}")
    if hosts is not None and spec.host:
        require(spec.host in hosts, f"unknown host {spec.host!r}", f"use one of {', '.join(hosts)}")
