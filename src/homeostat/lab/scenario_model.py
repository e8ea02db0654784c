"""Fits a performance model to the observations of a simulated scenario."""

from __future__ import annotations

from homeostat.core.cycle import Trace
from homeostat.core.loop_state import State
from homeostat.log_views.watched_model import WATCHING, model_of
from homeostat.models.application_model import ApplicationModel
from homeostat.sim.scenario.spec import Scenario
from homeostat.sim.simulation import SimulatedEngine, simulate


def from_scenario(scenario: Scenario, seed: int | None = None) -> ApplicationModel:
    """Watch the scenario to its end without acting, and fit a model to the observations."""
    states: list[tuple[State, float]] = []

    def keep_last(_trace: Trace, state: State, engine: SimulatedEngine) -> None:
        states[:] = [(state, engine.now_s)]

    simulate(scenario, WATCHING, seed=seed, mode="observe", on_step=keep_last)
    state, now_s = states[0]
    return model_of(state, now_s, scenario.name)
