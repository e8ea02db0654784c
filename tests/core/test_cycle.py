"""What holds of the loop whatever it is told: bounds, missing metrics, plug-ins that fail, the same events again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.configuration import Capabilities, KnobSpec
from homeostat.core.events import Apply
from homeostat.core.objective import Objective
from homeostat.core.observation import Observation
from homeostat.core.policy_definition import Policy
from homeostat.core.view import View
from homeostat.policies import registry
from homeostat.testing import play, sample_views, view_of
from homeostat.testing.strategies import damaged_observations, garbage
from support.examples import tenth_of_examples

ACTING = ("provisioning", "provisioning.paper", "throughput", "throughput.paper")
SHRINKING = ("provisioning", "provisioning.paper")
LOOSE = {"guards": {"confirm": "60 s", "cooldown": "10 s", "cooldown_shrink": "10 s"}}
SICK = ("overloaded", "idle", "a slow instance", "skewed", "overloaded batches", "idle batches", "a slow executor")


@cache
def policy_of(name: str) -> Policy:
    return registry.build(name, LOOSE)


@cache
def narrow(name: str) -> View:
    """A sample whose knobs have little room, with objectives that ask for more than that."""
    view = sample_views()[name]
    knobs = {
        knob: KnobSpec(
            max(1, int(view.configuration[knob]) - 1), int(view.configuration[knob]) + 2, spec.live, 5.0, spec.cost
        )
        for knob, spec in view.capabilities.knobs.items()
    }
    objective = Objective(throughput_per_s=1e6, lag_s=1.0, cost_limit=11.0)
    return view_of(view.window.observations, capabilities=Capabilities(knobs, True, 5.0), objective=objective)


def within_bounds(actions: Sequence[Apply], view: View) -> None:
    for action in actions:
        for knob, value in action.desired.values.items():
            spec = view.capabilities.knobs[knob]
            assert spec.minimum <= value <= spec.maximum, f"{knob} = {value}"
        paid = view.capabilities.cost(view.configuration)
        assert view.capabilities.cost(action.desired) <= max(11.0, paid)


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTING)
@tenth_of_examples()
@given(data=st.data())
def test_no_plan_is_outside_its_bounds_whatever_is_measured(name: str, data: st.DataObject) -> None:
    view = narrow(data.draw(st.sampled_from(SICK)))
    observed = data.draw(damaged_observations(view.window.observations, wrong=True))
    played = play(policy_of(name), view, observed)
    within_bounds(played.actions, view)
    assert played.texts("failure") == []


@pytest.mark.parametrize("name", ACTING)
@pytest.mark.parametrize("alone", [True, False])
def test_a_component_that_the_engine_did_not_describe_reaches_no_plug_in(name: str, alone: bool) -> None:
    view = narrow("overloaded batches")
    observed = [
        replace(one, tasks={**({} if alone else one.tasks), "stranger": list(one.tasks.values())[-1]})
        for one in view.window.observations
    ]
    played = play(policy_of(name), view, observed)
    assert played.texts("failure") == []
    assert all("stranger" not in one.tasks for one in played.state.window)
    assert all("stranger" not in entry.components for entry in played.state.history)


@pytest.mark.slow
@pytest.mark.parametrize("name", ACTING)
@tenth_of_examples()
@given(observed=garbage(("lines", "split", "count")))
def test_garbage_alone_neither_stops_the_loop_nor_shrinks_anything(
    name: str, observed: tuple[Observation, ...]
) -> None:
    view = narrow("overloaded")
    played = play(policy_of(name), view, observed)
    within_bounds(played.actions, view)
    assert not [text for text in played.texts("failure") if not text.startswith("a sensor")]
    for action in played.actions:
        assert view.capabilities.cost(action.desired) >= view.capabilities.cost(view.configuration)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHRINKING)
@pytest.mark.parametrize("sample", ["idle", "idle batches"])
def test_a_loop_that_sees_everything_gives_back_what_is_idle(name: str, sample: str) -> None:
    view = sample_views()[sample]
    costs = [view.capabilities.cost(a.desired) for a in play(policy_of(name), view, view.window.observations).actions]
    assert costs
    assert min(costs) < view.capabilities.cost(view.configuration)


REQUIRED = {
    "idle": {"rows", "run_s", "arrival_per_s", "pending_rows", "pressured_s"},
    "idle batches": {"rows", "run_s", "finish_s", "arrival_per_s", "pending_rows", "seconds"},
}
OF_SOURCES = {"idle": {"arrival_per_s"}, "idle batches": {"arrival_per_s", "pending_rows", "seconds"}}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHRINKING)
@pytest.mark.parametrize("sample", REQUIRED)
@tenth_of_examples()
@given(data=st.data())
def test_nothing_shrinks_while_a_metric_is_missing(name: str, sample: str, data: st.DataObject) -> None:
    """Lost at least once in every confirm window: some column, some component, some instance, or all of a tick."""
    view = sample_views()[sample]
    observed = list(view.window.observations)
    every = data.draw(st.integers(2, 6))
    first = data.draw(st.integers(0, every - 1))
    kept = []
    for number, observation in enumerate(observed):
        if number % every != first:
            kept.append(observation)
        elif data.draw(st.booleans()):
            component = data.draw(st.sampled_from(["", "lines", "count"]))
            reported = REQUIRED[sample] - (OF_SOURCES[sample] if component == "count" else set())
            columns = data.draw(st.sets(st.sampled_from(sorted(reported)), min_size=1))
            kept.append(lose(observation, columns, component, data.draw(st.none() | st.integers(0, 3))))
    played = play(policy_of(name), view, kept)
    paid = view.capabilities.cost(view.configuration)
    assert not [a for a in played.actions if view.capabilities.cost(a.desired) < paid]


def lose(observation: Observation, columns: set[str], component: str, instance: int | None) -> Observation:
    tasks = dict(observation.tasks)
    for name, sample in observation.tasks.items():
        if component in ("", name):
            changes = {}
            for column in columns & {"rows", "run_s", "pending_rows", "pressured_s", "finish_s"}:
                values = getattr(sample, column).copy()
                values[slice(None) if instance is None or instance >= len(values) else instance] = float("nan")
                changes[column] = values
            tasks[name] = replace(sample, **changes)
    flow_columns = columns & {"rows", "arrival_per_s", "pending_rows", "seconds"}
    lost: dict[str, Any] = dict.fromkeys(flow_columns, float("nan"))
    flows = tuple(replace(f, **lost) if component in ("", f.source) else f for f in observation.flows)
    return replace(observation, tasks=tasks, flows=flows)
