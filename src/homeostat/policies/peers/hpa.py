"""Kubernetes' Horizontal Pod Autoscaler, with KEDA's lag as a second metric: re-implementation of the published rule.

desired = ⌈n · metric ÷ target⌉, unchanged within a tolerance of 0.1, the largest over all metrics. Scaling down goes to
the largest value desired in the last 300 s. The first metric is utilisation (busy share, target 0.7). If `lag_rows` is
set, the second is the number of rows that wait per instance, as in KEDA's Kafka scaler.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from homeostat.core.digest import Digest
from homeostat.core.policy_definition import Policy
from homeostat.core.view import View
from homeostat.policies.peers.measurements import Load, Unit, measure, recent, units
from homeostat.policies.peers.rule import Missing, Target, rule_policy
from homeostat.policies.setting_checks import check_settings

# Kubernetes' default tolerance of the ratio of a metric to its target.
TOLERANCE = 0.1

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class HpaSettings:
    """Defaults of Kubernetes, except where a comment says otherwise."""

    # How often the rule is applied.
    sync_s: float = 15.0
    # The busy share to reach. There is no default in Kubernetes; this is Flink's.
    target_utilisation: float = 0.7
    # Ratios this close to 1 change nothing.
    tolerance: float = TOLERANCE
    # Scaling down goes to the largest value desired within this time.
    stabilise_down_s: float = 300.0
    # What a metric is averaged over: about the resolution of the metrics server. Ours.
    metric_s: float = 60.0
    # Rows that may wait per instance; 0 leaves lag out. KEDA's default for Kafka is 10.
    lag_rows: float = 0.0

    def __post_init__(self) -> None:
        check_settings(
            self,
            positive=("sync_s", "metric_s"),
            not_negative=("tolerance", "stabilise_down_s", "lag_rows"),
            shares=("target_utilisation",),
        )


def desired_replicas(now: float, metric: float, target: float, tolerance: float = TOLERANCE) -> int:
    """Return ⌈n · metric ÷ target⌉, or n if the ratio is within the tolerance of 1.

    >>> desired_replicas(4, 0.9, 0.6), desired_replicas(4, 0.65, 0.6)
    (6, 4)
    """
    ratio = metric / target
    return round(now) if abs(ratio - 1.0) <= tolerance else max(1, math.ceil(now * ratio - _ROUNDING))


@dataclass(frozen=True, slots=True)
class HpaRule:
    settings: HpaSettings = HpaSettings()
    name: str = "hpa"

    def targets(self, view: View) -> Sequence[Target] | Missing:
        settings = self.settings
        targets = []
        digests = recent(view, settings.metric_s)
        for unit in units(view) if digests else ():
            load = measure(view, unit, digests)
            if not math.isfinite(load.busy):
                return Missing("useful time", unit.component)
            lag = self._lag_rows(view, unit, load, digests)
            target = self._desired_count(load, lag)
            if target < unit.now:
                target = min(unit.now, max(target, self._largest_lately(view, unit)))
            minimum = math.ceil(view.spec(unit.knob).minimum)
            evidence = {"utilisation": load.busy, "target": settings.target_utilisation}
            if settings.lag_rows:
                evidence["lag_rows"] = lag
            targets.append(Target(unit, max(target, minimum), evidence))
        return targets

    def _desired_count(self, load: Load, lag: float) -> int:
        settings = self.settings
        by_use = desired_replicas(load.instances, load.busy, settings.target_utilisation, settings.tolerance)
        if not settings.lag_rows or not math.isfinite(lag):
            return by_use
        each = lag / load.instances
        return max(by_use, desired_replicas(load.instances, each, settings.lag_rows, settings.tolerance))

    def _lag_rows(self, view: View, unit: Unit, load: Load, digests: Sequence[Digest]) -> float:
        """Rows that wait for the unit: in its own queues, and at the sources if it reads from them."""
        at_sources = digests[-1].pending_rows
        if view.micro_batch:
            return at_sources
        sources = {source.name for source in view.topology.sources}
        reads = sources.intersection(view.topology[unit.component].inputs)
        return load.pending_rows + (at_sources if reads or unit.component in sources else 0.0)

    def _largest_lately(self, view: View, unit: Unit) -> int:
        """The largest value desired within the stabilisation window, including the time before the last change."""
        settings = self.settings
        start_s = view.now_s - settings.stabilise_down_s
        history = [d for d in view.history if d.epoch >= 0 and d.at_s > start_s - settings.metric_s]
        if not view.history or view.history[0].at_s - view.history[0].span_s > start_s:
            return unit.now
        largest = 0
        for digest in (d for d in history if d.at_s > start_s):
            metric = [
                d
                for d in history
                if d.epoch == digest.epoch and digest.at_s - settings.metric_s < d.at_s <= digest.at_s
            ]
            load = measure(view, unit, metric)
            if not math.isfinite(load.busy):
                return unit.now
            largest = max(largest, self._desired_count(load, self._lag_rows(view, unit, load, metric)))
        return largest


def hpa(settings: HpaSettings | None = None) -> Policy:
    """HPA: sizes replicas by the ratio of a metric to its target."""
    settings = settings or HpaSettings()
    return rule_policy(HpaRule(settings), cadence_s=settings.sync_s, settle_s=0.0, window_s=settings.metric_s)
