"""The experiments that ship with the package: found by name, and with the arithmetic that their heads state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.configuration import EXECUTORS, SPREAD, Knob, SetLive
from homeostat.core.errors import ConfigError
from homeostat.core.events import Apply
from homeostat.sim.dataflow.engine import Dataflow
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario import catalogue
from homeostat.sim.scenario.spec import DataflowSpec, Noise, WorkloadSpec
from homeostat.sim.workload import Workload


def test_the_shipped_scenarios_are_listed_in_their_natural_order() -> None:
    assert [name for name in catalogue.names() if name.startswith("E")] == [
        "E1",
        "E1-microbatch",
        "E2",
        "E3",
        "E4",
        "E4-microbatch",
        "E5",
        "E6",
        "E6-microbatch",
        "E7",
        "E8",
        "E9",
    ]
    assert tuple(catalogue.titles()) == catalogue.names()
    assert all(catalogue.titles().values())


@pytest.mark.parametrize("name", catalogue.names())
def test_a_shipped_scenario_loads_under_its_name_and_runs(name: str) -> None:
    scenario = catalogue.load(name)
    assert scenario.name == name
    assert scenario.notes == ()
    engine = Dataflow(scenario) if isinstance(scenario.engine, DataflowSpec) else Microbatch(scenario)
    assert engine.wait(60.0)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("E77", "there is no scenario 'E77' (did you mean 'E7'?; or give the path of a .toml file)"),
        ("e7", "there is no scenario 'e7' (did you mean 'E7'?; or give the path of a .toml file)"),
        (
            "gibberi",
            f"there is no scenario 'gibberi' (valid: {', '.join(catalogue.names())}; or give the path of a .toml file)",
        ),
        ("none.toml", "none.toml: no such file"),
        ("no/where", "no/where: no such file"),
        (
            "nul\0",
            f"there is no scenario 'nul\0' (valid: {', '.join(catalogue.names())}; or give the path of a .toml file)",
        ),
    ],
)
def test_an_unknown_scenario_is_refused_with_the_nearest_name(name: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        catalogue.load(name)
    assert refused.value.line == reason


def is_healthy(name: str, at_s: float, **parallelism: int) -> bool:
    """Whether a shipped dataflow at this parallelism holds the load of that moment, long after its queues filled."""
    scenario = catalogue.load(name)
    components = tuple(replace(c, parallelism=parallelism.get(c.name, c.parallelism)) for c in scenario.components)
    load_per_s = Workload(replace(scenario.workload, noise=Noise()), seed=1).mean_per_s(at_s)
    load = WorkloadSpec("constant", rate_per_s=load_per_s)
    engine = Dataflow(replace(scenario, components=components, workload=load, faults=()))
    engine.wait(1500)
    return engine.truth[-1].healthy


@pytest.mark.parametrize(
    ("name", "at_s", "parallelism", "healthy"),
    [
        ("E1", 0, {}, True),
        ("E1", 2400, {"splitter": 8, "counter": 17}, True),
        ("E1", 4800, {}, False),
        ("E1", 4800, {"splitter": 13, "counter": 27}, True),
        ("E2", 0, {}, False),
        ("E2", 0, {"spout": 20, "splitter": 10, "counter": 21}, True),
        ("E2", 0, {"spout": 19, "splitter": 10, "counter": 21}, False),
        ("E3", 0, {}, False),
        ("E3", 0, {"counter": 24}, True),
        ("E4", 0, {}, True),
        ("E5", 0, {}, True),
        ("E5", 4200, {}, False),
        ("E6", 0, {}, True),
        ("E7", 0, {}, False),
        ("E7", 0, {"flatmap": 10, "count": 20}, True),
        ("E7", 0, {"flatmap": 9, "count": 20}, False),
        ("E7", 0, {"flatmap": 10, "count": 19}, False),
        ("E8", 0, {}, False),
        ("E8", 0, {"flatmap": 19, "count": 11}, True),
        ("E8", 0, {"flatmap": 18, "count": 11}, False),
        ("E8", 0, {"flatmap": 19, "count": 10}, False),
        ("E8", 800, {"flatmap": 10, "count": 6}, True),
        ("E8", 800, {"flatmap": 9, "count": 6}, False),
        ("E8", 800, {"flatmap": 10, "count": 5}, False),
        ("E9", 0, {}, False),
        ("E9", 0, {"window": 16, "top": 4}, True),
        ("E9", 0, {"window": 15, "top": 4}, False),
        ("E9", 0, {"window": 16, "top": 3}, False),
    ],
)
def test_the_arithmetic_in_the_shipped_files_holds(
    name: str, at_s: float, parallelism: dict[str, int], healthy: bool
) -> None:
    assert is_healthy(name, at_s, **parallelism) is healthy


def test_e7_is_the_experiment_of_the_paper() -> None:
    scenario = catalogue.load("E7")
    per_min = {c.name: c.rate_per_s * 60 for c in scenario.components}
    assert scenario.workload.rate_per_s * 60 == pytest.approx(1_000_000)
    assert per_min["flatmap"] == pytest.approx(100_000)
    assert per_min["count"] == pytest.approx(1_000_000)
    assert [(c.parallelism, c.selectivity) for c in scenario.components] == [(1, 1.0), (1, 20.0), (1, 1.0)]
    assert scenario.settings["guards"]["largest_change"] == 20
    assert scenario.duration_s == 4000


@pytest.mark.parametrize(("share", "spread"), [(0.2, 2), (0.5, 4), (0.7, 4)])
def test_e6_has_room_for_the_hot_key_once_it_is_spread(share: float, spread: int) -> None:
    scenario = catalogue.load("E6")
    fault = replace(scenario.faults[0], share=share, at_s=0.0, until_s=float("inf"))
    quiet = replace(scenario, faults=(fault,), workload=replace(scenario.workload, noise=Noise()))
    engine = Dataflow(quiet)
    engine.wait(600)
    assert not engine.truth[-1].healthy
    observed = engine.describe().configuration
    values = {Knob(SPREAD, "counter"): spread}
    desired = replace(observed, values={**observed.values, **values})
    engine.apply(Apply("spread", engine.now_s, desired, (SetLive(values),), time_limit_s=60))
    engine.wait(1800)
    assert engine.truth[-1].healthy


def test_e3_hides_the_second_problem_behind_the_first() -> None:
    engine = Dataflow(catalogue.load("E3"))
    engine.wait(900)
    taken_per_min = engine.truth[-1].taken_per_s * 60
    assert taken_per_min == pytest.approx(12 * 25_000, rel=0.01)


@pytest.mark.parametrize(("at_s", "executors"), [(600, 8), (3000, 6), (5400, 10)])
def test_the_micro_batches_of_e1_need_what_the_file_says(at_s: float, executors: int) -> None:
    scenario = catalogue.load("E1-microbatch")
    engine = Microbatch(replace(scenario, workload=replace(scenario.workload, noise=Noise())))
    engine.wait(at_s)
    assert engine.truth[-1].needed[Knob(EXECUTORS, "app")] == executors
