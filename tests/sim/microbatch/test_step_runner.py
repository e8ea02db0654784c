"""Steps of a command take effect on a simulated query, or are called off."""

from __future__ import annotations

from homeostat.core.configuration import EXECUTORS_KNOB, Patch, SetLive
from homeostat.sim.microbatch.layout import TRIGGER_KNOB
from support.simulated_query import SimulatedQuery


def test_more_executors_take_effect_when_they_are_up() -> None:
    simulated = SimulatedQuery()
    (step,) = simulated.steps.steps_to(simulated.steps.configuration().patched(Patch({EXECUTORS_KNOB: 3})))
    simulated.steps.begin(step)
    assert not simulated.steps.took_effect(step)
    simulated.agenda.run(10.0)
    assert simulated.steps.took_effect(step)
    assert simulated.steps.configuration().values[EXECUTORS_KNOB] == 3


def test_a_step_that_is_called_off_leaves_what_was_there() -> None:
    simulated = SimulatedQuery()
    step = SetLive({EXECUTORS_KNOB: 5})
    simulated.steps.begin(step)
    assert simulated.steps.call_off(step) == "2 executors are up instead of 5"
    simulated.agenda.run(60.0)
    assert simulated.steps.configuration().values[EXECUTORS_KNOB] == 2


def test_a_replaced_executor_leaves_and_another_comes() -> None:
    simulated = SimulatedQuery()
    present = {executor.id for executor in simulated.executors.members}
    (step,) = simulated.steps.steps_to(simulated.steps.configuration().patched(Patch(retire=frozenset({"exec-1"}))))
    simulated.steps.begin(step)
    simulated.agenda.run(40.0)
    now = {executor.id for executor in simulated.executors.up(40.0)}
    assert simulated.steps.took_effect(step)
    assert (present - now, len(now)) == ({"exec-1"}, 2)


def test_an_impossible_configuration_is_refused() -> None:
    steps = SimulatedQuery().steps
    assert steps.refusal(steps.configuration().patched(Patch({EXECUTORS_KNOB: 0})))
    assert steps.refusal(steps.configuration().patched(Patch({TRIGGER_KNOB: 20.0}))) == ""
