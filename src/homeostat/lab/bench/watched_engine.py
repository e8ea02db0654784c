"""A simulated engine that nobody regulates: an experiment changes it, and a loop that only observes keeps the views."""

from __future__ import annotations

import math
from collections.abc import Sequence

from homeostat.core.configuration import Configuration, Patch, diff
from homeostat.core.cycle import step
from homeostat.core.events import Apply, Event, Observed, Receipt
from homeostat.core.loop_state import State
from homeostat.core.observation import Observation
from homeostat.core.plugins import look
from homeostat.core.view import View
from homeostat.log_views.watched_model import WATCHING
from homeostat.sim.scenario.spec import Scenario
from homeostat.sim.simulation import build_engine

_TIME_LIMIT_S = 3_600.0


class WatchedEngine:
    """`step_s` is how far the clock goes before the next look. `ordered` is a change that has not taken effect yet."""

    def __init__(self, scenario: Scenario, step_s: float = 0.5) -> None:
        self._engine, self._step_s = build_engine(scenario), step_s
        self._state = State(mode="observe", objective=scenario.objective)
        self._commands = 0
        self.ordered: Configuration | None = None
        self._think([self._engine.describe()])

    @property
    def now_s(self) -> float:
        return self._engine.now_s

    @property
    def view(self) -> View:
        return look(WATCHING, self._state, self.now_s)

    def change(self, patch: Patch) -> None:
        description = self._engine.describe()
        desired = description.configuration.patched(patch)
        steps = diff(description.configuration, desired, description.capabilities)
        if steps:
            self._commands += 1
            command = Apply(f"change-{self._commands}", self.now_s, desired, steps, _TIME_LIMIT_S)
            self.ordered = desired
            self._engine.apply(command)

    def run_until(self, at_s: float) -> None:
        self._think(self._engine.wait(at_s))

    def next_batch(self, until_s: float = math.inf) -> Observation | None:
        """Let time pass until the next batch has ended; None if that takes too long."""
        while self.now_s < until_s:
            events = self._engine.wait(min(until_s, self.now_s + self._step_s))
            if events:
                self._think(events)
            batches = [event.observation for event in events if isinstance(event, Observed)]
            if batches:
                return batches[-1]
        return None

    def close(self) -> None:
        self._engine.close()

    def _think(self, events: Sequence[Event]) -> None:
        if any(isinstance(event, Receipt) for event in events):
            self.ordered = None
        self._state, _, _ = step(WATCHING, self._state, list(events), self.now_s)
