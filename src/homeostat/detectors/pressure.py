"""Detects that more rows arrive than can be processed.

It compares arrival with capacity, which shows before queues fill, and reads back-pressure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import PRESSURE, UNKNOWN
from homeostat.core.view import View
from homeostat.core.wording import whole, whole_span
from homeostat.detectors.sensitivity import LEVEL_OVER, NOISE_FILTER, Sensitivity
from homeostat.models.capacity import PEAK_QUANTILE, PEAKS_OVER, Load, level, loads, nothing_arrives
from homeostat.models.noise import cusum, since_onset, whiten

# The mean share of the load held back from which it is pressure: a lower one reports short waits. A choice.
_HELD_BACK = 0.1
# The share that must be held back in every one of those observations: below it a component is not under pressure at
# times. Heron's noise filter.
_HELD_BACK_ALWAYS = NOISE_FILTER
# In ln(utilisation): a load exactly on the line is not above it. The value is far below any noise.
_ROUNDING = 1e-6
# The line between too much and enough, as a share of the way from the planned load (1) to the capacity (0), in ln.
# Half-way, the fewest observations separate the two. Theory of sequential tests.
_LINE = 0.5
# Where executors come and go without a pause, another one is worth it as soon as the planned headroom is short of this
# part of one. A smaller part adds executors for chance, a larger one lets the headroom shrink first. A choice.
_PART_OF_INSTANCE = 0.25
# The same for the slack and the alarm of that CUSUM: sooner than for pressure, because a needless executor is cheap and
# goes again. Choices; `homeostat bench duel` shows what they cost and win.
_HEADROOM_SLACK, _HEADROOM_ALARM = 0.25, 5.0
# The share of the observations above capacity from which peaks are pressure: lower pays for rare peaks. A choice.
_TOO_OFTEN = 0.2
# Peaks must go on in the last third of the observations, and a third of them must be there at all: a load that has come
# down has no peaks any more. A choice.
_PARTS_OF_PEAKS = 3
# A backlog shorter than this is never pressure: it is gone before an action takes effect. A choice.
_BACKLOG_S = 60.0
# A backlog is trouble when working it off would take this many times the allowed time: below it, a plan that already
# catches up would be replaced on the way. A choice.
_LATE_CATCH_UP = 1.5
# Observations in which a backlog must shrink each time to count as being worked off. One more than the least number, so
# that there are as many steps. A choice.
_SHRINKING_OBSERVATIONS = LEAST_OBSERVATIONS + 1


@dataclass(frozen=True, slots=True)
class PressureEvidence(Evidence):
    """Why a component is overloaded: the load rose, comes in peaks, or left a backlog, or the component holds its
    senders back.
    """

    headline: ClassVar[str] = "{where} is overloaded"
    offered_per_s: float | None = None
    capacity_per_s: float | None = None
    utilisation: float | None = None
    planned_utilisation: float | None = None
    share_beyond_capacity: float | None = None
    behind_s: float | None = None
    share_held_back: float | None = None
    cusum: float | None = None
    noise: float | None = None
    observations_since_onset: float | None = None

    def summary(self) -> str:
        if self.share_held_back is not None:
            return f"it holds back {self.share_held_back:.0%} of the rows sent to it"
        if self.behind_s is not None:
            return f"{whole_span(self.behind_s)} of arrivals wait, and processing them would take too long"
        if self.offered_per_s is None or self.capacity_per_s is None:
            return ""
        offered, capacity = whole(self.offered_per_s), whole(self.capacity_per_s)
        if self.share_beyond_capacity is not None:
            often = f"{self.share_beyond_capacity:.0%} of the time"
            return f"peaks of {offered} rows/s arrive {often}, it can process {capacity}"
        return f"{offered} rows/s arrive, it can process {capacity}"


@dataclass(frozen=True, slots=True)
class PressureDetector:
    """Reports components that get more rows than they can process, or that hold their senders back."""

    sensitivity: Sensitivity = Sensitivity()
    # The time in which a backlog should be worked off, unless the objective says: shorter adds instances for every
    # interruption. A choice: the default of the setting `catch_up`.
    catch_up_s: float = 600.0
    name: str = "pressure"

    def detect(self, view: View) -> Iterator[Symptom]:
        """Check the most downstream components first: a component that one of them holds back is not the cause."""
        behind: set[str] = set()
        for component, load in reversed(loads(view).items()):
            downstream = {c.name for c in view.topology.downstream(component)}
            excess = self._too_little(view, load) if load.is_known else None
            refused_share = self._refused_share(view, component)
            is_explained = bool(downstream & behind) or (load.is_known and _works_off_a_backlog(view))
            if excess is not None:
                yield excess
            elif refused_share >= _HELD_BACK and not is_explained:
                evidence = PressureEvidence(share_held_back=refused_share, capacity_per_s=load.capacity_per_s)
                yield Symptom(PRESSURE, component, min(1.0, refused_share), evidence)
            elif not load.is_known and not nothing_arrives(view):
                missing = "arrival" if math.isfinite(load.capacity_per_s) else "rows or useful time"
                yield Symptom(UNKNOWN, component, evidence=MissingMetric(self.name, missing))
            if excess is not None or refused_share >= _HELD_BACK or downstream & behind:
                behind.add(component)

    def _too_little(self, view: View, load: Load) -> Symptom | None:
        line = _LINE * math.log(load.target)
        excess = self._excess(load, line, self.sensitivity.slack, self.sensitivity.alarm)
        return excess or self._headroom(view, load) or self._peaks(load) or self._backlog(view, load)

    def _headroom(self, view: View, load: Load) -> Symptom | None:
        """The headroom that a policy by risk plans for is used up, although the capacity is still enough."""
        if load.growth <= 1.0 or not view.spec(view.topology[load.component].scaled_by).live:
            return None
        line = math.log(load.target * (1.0 + _PART_OF_INSTANCE / load.instances))
        return self._excess(load, line, _HEADROOM_SLACK, _HEADROOM_ALARM)

    def _excess(self, load: Load, line: float, slack: float, alarm: float) -> Symptom | None:
        """The load has risen above the line (ln of the utilisation), and more than its noise explains."""
        logs, sure = load.log_utilisation, self.sensitivity
        least = load.telling(sure.least)
        if not least:
            return None
        noise = load.noise
        sums = cusum(whiten(logs - line, noise, sure.floor), slack, load.times)
        count = since_onset(logs, sums, noise, least)
        if sums[-1] < alarm or count < least:
            return None
        mean = float(logs[-min(count, LEVEL_OVER) :].mean())
        if min(mean, float(logs[-least:].mean())) <= line + _ROUNDING:
            return None
        utilisation = math.exp(mean)
        return Symptom(
            PRESSURE,
            load.component,
            max(0.0, 1.0 - 1.0 / utilisation),
            PressureEvidence(
                offered_per_s=level(load.offered_per_s, min(count, LEVEL_OVER)),
                capacity_per_s=load.capacity_per_s,
                utilisation=utilisation,
                planned_utilisation=load.target,
                cusum=float(sums[-1]),
                noise=noise.sigma,
                observations_since_onset=float(count),
            ),
        )

    def _peaks(self, load: Load) -> Symptom | None:
        """On average the capacity is enough, but peaks exceed it too often.

        The latest observations must still have peaks. If the load has been within the capacity lately, it has fallen.
        """
        logs = load.log_utilisation[-PEAKS_OVER:]
        beyond = logs > 0.0
        often = (
            min(float(np.mean(beyond)), float(np.mean(beyond[-len(logs) // _PARTS_OF_PEAKS :]))) if len(logs) else 0.0
        )
        if len(logs) < PEAKS_OVER // _PARTS_OF_PEAKS or often < _TOO_OFTEN:
            return None
        peak = math.exp(float(np.quantile(logs, PEAK_QUANTILE)))
        evidence = PressureEvidence(
            offered_per_s=peak * load.capacity_per_s,
            capacity_per_s=load.capacity_per_s,
            share_beyond_capacity=float(np.mean(beyond)),
            observations_since_onset=float(len(logs)),
        )
        return Symptom(PRESSURE, load.component, 1.0 - 1.0 / max(peak, 1.0), evidence)

    def _backlog(self, view: View, load: Load) -> Symptom | None:
        """The capacity is enough for the load, but not to work off the rows that wait at the sources in time."""
        pending, arrival = view.flow("pending_rows", last=LEAST_OBSERVATIONS), level(view.flow("arrival_per_s"))
        room = load.capacity_per_s / level(load.offered_per_s)
        if len(pending) < LEAST_OBSERVATIONS or not (
            np.isfinite(pending).all() and arrival > 0 and 0 < room < math.inf
        ):
            return None
        waiting_s = float(pending.min()) / arrival
        longest_s = _LATE_CATCH_UP * (view.objective.catch_up_s or self.catch_up_s)
        if waiting_s < _BACKLOG_S or waiting_s <= (room - 1.0) * longest_s:
            return None
        needed_rate = 1.0 + waiting_s / longest_s
        evidence = PressureEvidence(
            offered_per_s=needed_rate * load.capacity_per_s / room,
            capacity_per_s=load.capacity_per_s,
            behind_s=waiting_s,
        )
        return Symptom(PRESSURE, load.component, 1.0 - 1.0 / max(1.0, needed_rate / room), evidence)

    def _refused_share(self, view: View, component: str) -> float:
        """Return the share of the load that was held back in all of the last observations; NaN if that is unknown."""
        shares = view.column(component, "pressured", last=max(LEAST_OBSERVATIONS, self.sensitivity.least))
        finite = shares[np.isfinite(shares)]
        if len(finite) < self.sensitivity.least:
            return math.nan
        return float(finite.mean()) if float(finite.min()) > _HELD_BACK_ALWAYS else 0.0


def _works_off_a_backlog(view: View) -> bool:
    """Sources that catch up send all they can. While fewer and fewer rows wait, holding them back is not a problem.

    When none wait at the source any more, the rest of the backlog waits in the queues of the components.
    """
    waiting = view.flow("pending_rows", last=_SHRINKING_OBSERVATIONS)
    if not waiting.any():
        queues = [view.column(c.name, "pending_rows", last=_SHRINKING_OBSERVATIONS) for c in view.topology]
        waiting = sum((rows for rows in queues if len(rows) == len(waiting)), waiting)
    return len(waiting) > 1 and bool(np.isfinite(waiting).all()) and bool((np.diff(waiting) < 0).all())
