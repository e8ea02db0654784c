"""On a constant load the loop comes to rest: no up, down and up again, and nothing at all without noise."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.policies import registry
from homeostat.sim.referee import parallelism_json
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import RunResult, build_engine, simulate

HOUR_S = 3600.0
SETTLED_S = 3000.0


@st.composite
def applications(draw: st.DrawFn, engine: str) -> Scenario:
    """A chain of one or two stages, anything from far too small to far too large for its load."""
    load = draw(st.floats(50.0, 500.0))
    dataflow = engine == "dataflow"
    stages = [ComponentSpec("lines", "source", (), 2 if dataflow else 16, rate_per_s=800.0, maximum=60)]
    for number in range(draw(st.integers(1, 2))):
        needed = draw(st.floats(0.6, 8.0))
        present = draw(st.integers(1, 12)) if dataflow else draw(st.sampled_from([8, 16, 24]))
        selectivity = draw(st.sampled_from([0.5, 1.0, 4.0]))
        name, before = f"stage-{number}", stages[-1]
        arriving = load if number == 0 else load * before.selectivity
        stages.append(
            ComponentSpec(
                name,
                inputs=(before.name,),
                parallelism=present,
                rate_per_s=arriving / needed,
                selectivity=selectivity,
                maximum=60,
            )
        )
    sigma = draw(st.sampled_from([0.0, 0.05]))
    workload = WorkloadSpec("constant", load, noise=Noise(sigma, 0.5))
    spec = DataflowSpec() if dataflow else MicrobatchSpec(executors=draw(st.integers(1, 8)))
    return Scenario("steady", "", spec, 1.2 * HOUR_S, tuple(stages), workload, seed=draw(st.integers(1, 1000)))


def directions(scenario: Scenario, result: RunResult) -> dict[str, list[int]]:
    """For each knob, up (1) and down (-1) in turn."""
    last = parallelism_json(build_engine(scenario).describe().configuration)
    moved: dict[str, list[int]] = {}
    for taken in result.trajectory:
        for name, value in taken.parallelism.items():
            if value != last[name]:
                moved.setdefault(name, []).append(1 if value > last[name] else -1)
        last = dict(taken.parallelism)
    return {name: [way for way, _ in groupby(ways)] for name, ways in moved.items()}


def comes_to_rest(scenario: Scenario) -> None:
    result = simulate(scenario, registry.build("provisioning"))
    assert all(len(ways) < 3 for ways in directions(scenario, result).values()), result.trajectory
    if scenario.workload.noise.sigma == 0.0:
        assert [taken for taken in result.trajectory if taken.applied_s > SETTLED_S] == []


@pytest.mark.parametrize("engine", ["dataflow", "microbatch"])
@pytest.mark.slow
@settings(max_examples=4)
@given(data=st.data())
def test_a_constant_load_is_sized_once_and_then_left_alone(engine: str, data: st.DataObject) -> None:
    comes_to_rest(data.draw(applications(engine)))


def chain(load: float, *stages: tuple[int, float, float]) -> Scenario:
    """Stages by their instances, the rows per second of one instance, and the rows that each row becomes."""
    components = [ComponentSpec("lines", "source", parallelism=2, rate_per_s=800.0, maximum=60)]
    for number, (instances, rate_per_s, selectivity) in enumerate(stages):
        before = components[-1].name
        components.append(
            ComponentSpec(
                f"stage-{number}",
                inputs=(before,),
                parallelism=instances,
                rate_per_s=rate_per_s,
                selectivity=selectivity,
                maximum=60,
            )
        )
    return Scenario("steady", "", DataflowSpec(), 1.2 * HOUR_S, tuple(components), WorkloadSpec("constant", load))


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(chain(131.0, (3, 218.0, 4.0), (8, 151.0, 0.5)), id="a-backlog-drains-slowly-from-the-queues"),
        pytest.param(chain(375.0, (12, 253.0, 4.0), (1, 240.0, 4.0)), id="one-stage-grows-while-others-shrink"),
        pytest.param(chain(50.0, (5, 100.0 / 3.0, 0.5), (1, 25.0, 0.5)), id="another-stage-has-no-room-for-a-restart"),
    ],
)
def test_an_action_is_not_blamed_for_the_backlog_that_its_restart_left(scenario: Scenario) -> None:
    comes_to_rest(scenario)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["dataflow", "microbatch"])
@settings(max_examples=40)
@given(data=st.data())
def test_many_constant_loads_are_sized_once_and_then_left_alone(engine: str, data: st.DataObject) -> None:
    comes_to_rest(data.draw(applications(engine)))


@pytest.mark.slow
def test_the_papers_flavour_goes_back_and_forth_where_the_default_does_not() -> None:
    """It takes away until that hurts and gives back, again and again, until more of it failed than succeeded."""
    stages = (
        ComponentSpec("lines", "source", rate_per_s=1000.0),
        ComponentSpec("count", inputs=("lines",), parallelism=4, rate_per_s=90.0),
    )
    scenario = Scenario("steady", "", DataflowSpec(), HOUR_S, stages, WorkloadSpec("constant", 100.0))
    paper = simulate(scenario, registry.build("provisioning.paper"))
    assert directions(scenario, paper)["count"][:4] == [-1, 1, -1, 1]
    assert directions(scenario, simulate(scenario, registry.build("provisioning"))) == {"count": [-1]}
