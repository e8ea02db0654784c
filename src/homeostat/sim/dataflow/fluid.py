"""Rows as a fluid: bounded queues between stages, and back-pressure from stage to stage."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from homeostat.core.observation import Array
from homeostat.sim.scenario.spec import ComponentSpec

_ROUNDING = 1e-9


class Stage:
    """All instances of one component. Arrays are changed in place for speed; rows are rows per step."""

    def __init__(self, spec: ComponentSpec, step_s: float, shares: Array) -> None:
        self.name = spec.name
        self.selectivity = spec.selectivity
        self.is_source = spec.kind == "source"
        self.upstream: tuple[Stage, ...] = ()
        self.downstream: tuple[Stage, ...] = ()
        self.stuck = False
        self.potential_rows = self.sent_rows = 0.0
        self.admits = 1.0
        self._step_s = step_s
        self._queue_limit = np.inf if self.is_source else spec.queue_s * spec.rate_per_s
        self.queue: Array = np.zeros(0)
        self._reset(len(shares))
        self.route(shares)

    def _reset(self, instances: int) -> None:
        self.queue, self._served, self._spare = (np.zeros(instances) for _ in range(3))
        self.rows, self._settled_rows, self.run_s, self.pressured_s = (np.zeros(instances) for _ in range(4))
        self.capacity_rows: Array = np.zeros(instances)

    def resize(self, shares: Array) -> None:
        """Change the number of instances. The queued rows are divided again, and instances that remain keep their
        measurements."""
        waiting = float(self.queue.sum())
        measured = (self.rows, self._settled_rows, self.run_s, self.pressured_s)
        self._reset(len(shares))
        for old, new in zip(measured, (self.rows, self._settled_rows, self.run_s, self.pressured_s), strict=True):
            survivors = min(len(old), len(new))
            new[:survivors] = old[:survivors]
        self.queue += waiting * shares
        self.route(shares)

    def route(self, shares: Array) -> None:
        """Divide the input by these shares from now on."""
        self._shares = shares
        self._even = bool((shares == shares[0]).all())
        self._empty = np.flatnonzero(shares == 0)
        self._whole_per_share = 1.0 / np.where(shares == 0, 1.0, shares)

    def set_capacity(self, rows: Array) -> None:
        """Set how many rows each instance can serve per step from now on."""
        self.settle()
        self.capacity_rows = rows

    def settle(self) -> None:
        """Add up the useful time of the rows served so far, at the present capacity."""
        fresh = self.rows - self._settled_rows
        np.divide(fresh, self.capacity_rows, out=fresh, where=fresh > 0)
        self.run_s += fresh * self._step_s
        self._settled_rows[:] = self.rows

    def clear_measurements(self) -> None:
        for column in (self.rows, self._settled_rows, self.run_s, self.pressured_s):
            column.fill(0.0)

    def weigh(self) -> None:
        """Compute what could be sent in this step without back-pressure."""
        np.minimum(self.queue, self.capacity_rows, out=self._served)
        self.potential_rows = float(np.add.reduce(self._served))

    def serve(self) -> None:
        """Serve the queues as fast as the slowest downstream stage admits."""
        throttle = 0.0 if self.stuck else 1.0
        for stage in self.downstream:
            throttle = min(throttle, stage.admits)
        if throttle < 1.0:
            np.multiply(self._served, throttle, out=self._served)
        self.sent_rows = self.potential_rows * throttle
        self.queue -= self._served
        self.rows += self._served

    def admit(self) -> None:
        """Compute the share of the offered rows that fits: the fullest instance holds back all senders."""
        offered_rows = sum(stage.potential_rows * stage.selectivity for stage in self.upstream)
        self.admits = 1.0
        if offered_rows <= 0:
            return
        if self._even:
            room = self._queue_limit - float(np.maximum.reduce(self.queue))
            admits = room * len(self.queue) / offered_rows
        else:
            admits = float(np.minimum.reduce(self._fitting())) / offered_rows
        if admits < 1 - _ROUNDING:
            self.admits = max(0.0, admits)
            refused = self._fitting()
            refused /= -offered_rows
            refused += 1.0
            np.clip(refused, 0.0, 1.0, out=refused)
            # An instance that still has room holds no sender back, even if a burst offers more than fits.
            refused[self.queue + self._served < self._queue_limit / 2] = 0.0
            refused *= self._step_s
            self.pressured_s += refused

    def take(self) -> None:
        """Queue what the upstream stages sent."""
        arrived_rows = sum(stage.sent_rows * stage.selectivity for stage in self.upstream)
        if self._even:
            self.queue += arrived_rows / len(self.queue)
        else:
            self.queue += np.multiply(self._shares, arrived_rows, out=self._spare)

    def _fitting(self) -> Array:
        """For each instance, how many rows offered to the whole stage would fill it."""
        spare = np.subtract(self._queue_limit, self.queue, out=self._spare)
        spare *= self._whole_per_share
        if len(self._empty):
            spare[self._empty] = np.inf
        return spare


class Fluid:
    """The stages of a topology, and the rows that wait at its sources."""

    def __init__(
        self,
        components: tuple[ComponentSpec, ...],
        shares: Mapping[str, Array],
        step_s: float,
        replayable: bool,
    ) -> None:
        self.stages = {spec.name: Stage(spec, step_s, shares[spec.name]) for spec in components}
        for spec in components:
            self.stages[spec.name].upstream = tuple(self.stages[name] for name in spec.inputs)
            readers = (other.name for other in components if spec.name in other.inputs)
            self.stages[spec.name].downstream = tuple(self.stages[name] for name in readers)
        order = list(self.stages.values())
        self._order = order
        self._sources = [stage for stage in order if stage.is_source]
        self._operators = [stage for stage in order if not stage.is_source]
        self._replayable = replayable
        self.pending_rows = {stage.name: 0.0 for stage in self._sources}
        self.taken_rows = {stage.name: 0.0 for stage in self._sources}

    def step(self, arrived_rows: float) -> None:
        """One step, in which this many rows arrive at each source."""
        for source in self._sources:
            source.queue.fill((self.pending_rows[source.name] + arrived_rows) / len(source.queue))
        for stage in self._order:
            stage.weigh()
        for stage in reversed(self._operators):
            stage.serve()
            stage.admit()
        for source in self._sources:
            source.serve()
            self.taken_rows[source.name] += source.sent_rows
            pending_rows = self.pending_rows[source.name] + arrived_rows - source.sent_rows
            self.pending_rows[source.name] = max(0.0, pending_rows) if self._replayable else 0.0
        for stage in self._operators:
            stage.take()

    def stand_still(self, arrived_rows: float) -> None:
        """One step in which nothing runs: rows that arrive wait, or are lost."""
        if self._replayable:
            for name in self.pending_rows:
                self.pending_rows[name] += arrived_rows
