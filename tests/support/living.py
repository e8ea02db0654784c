"""A run as a manager in another process leaves it: a simulated engine whose clock is the wall's."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from homeostat.core.configuration import Configuration
from homeostat.core.cycle import Trace
from homeostat.core.engine import Engine
from homeostat.core.events import Apply, EngineChanged, Event, Failure, Observed, Receipt
from homeostat.core.loop_state import Mode, State
from homeostat.policies import registry
from homeostat.runtime.diary import Diary
from homeostat.runtime.manager import Manager
from homeostat.runtime.model_keeper import ModelKeeper
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import build_engine
from homeostat.store.sqlite import SqliteStore

HISTORY_S = 1_200.0
STEP_S = 10.0
SCENARIO = Scenario(
    "words",
    "A word count whose load doubles",
    DataflowSpec(),
    7_200.0,
    (
        ComponentSpec("lines", "source", rate_per_s=1_000.0),
        ComponentSpec("count", inputs=("lines",), parallelism=3, rate_per_s=50.0),
    ),
    WorkloadSpec("steps", steps=((0.0, 100.0), (300.0, 200.0))),
)
BATCHES = Scenario(
    "batches",
    "A word count in micro-batches",
    MicrobatchSpec(trigger_s=10.0, executors=4, max_executors=30),
    7_200.0,
    (
        ComponentSpec("lines", "source", parallelism=24, rate_per_s=5_000.0),
        ComponentSpec("count", inputs=("lines",), parallelism=24, rate_per_s=500.0),
    ),
    WorkloadSpec(rate_per_s=1_000.0, noise=Noise(0.05)),
)


class WallClock:
    """The engine, with all its times moved from the simulation's to the wall's."""

    def __init__(self, inner: Engine, began_s: float) -> None:
        self._inner, self._began_s = inner, began_s

    @property
    def now_s(self) -> float:
        return self._inner.now_s + self._began_s

    def describe(self) -> EngineChanged:
        description = self._inner.describe()
        return replace(description, at_s=description.at_s + self._began_s)

    def wait(self, until_s: float) -> Sequence[Event]:
        return [self._move(event) for event in self._inner.wait(until_s - self._began_s)]

    def apply(self, command: Apply) -> None:
        self._inner.apply(replace(command, at_s=command.at_s - self._began_s))

    def close(self) -> None:
        self._inner.close()

    def _move(self, event: Event) -> Event:
        match event:
            case Observed(observation):
                return Observed(replace(observation, at_s=observation.at_s + self._began_s))
            case Receipt() | EngineChanged() | Failure():
                return replace(event, at_s=event.at_s + self._began_s)
        return event


class Living:
    """Twenty minutes of a word count, whose load doubles after five; `step` lets ten more seconds pass."""

    def __init__(self, log: Path, run: str, mode: Mode = "regulate", scenario: Scenario = SCENARIO) -> None:
        self.run = run
        self.store = SqliteStore(log)
        engine = WallClock(build_engine(scenario), time.time() - HISTORY_S)
        policy = registry.build("provisioning")
        diary, keeper = Diary(self.store, run, policy), ModelKeeper(self.store, run)

        def after_step(trace: Trace, state: State) -> None:
            diary.note(trace, state)
            keeper.look(policy, state, engine.now_s)

        self.manager = Manager(engine, policy, self.store, run, mode=mode, on_step=after_step)
        self.manager.start()
        self.catch_up()

    @property
    def configuration(self) -> Configuration:
        return self.manager.engine.describe().configuration

    def step(self) -> None:
        self.manager.advance(self.manager.engine.now_s + STEP_S)

    def catch_up(self) -> None:
        """Let time pass until now, so that the run does not look silent."""
        while self.manager.engine.now_s + STEP_S <= time.time():
            self.step()

    def close(self) -> None:
        self.store.close()
