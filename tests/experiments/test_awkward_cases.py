"""Situations that a loop easily gets wrong: each was got wrong once."""

from __future__ import annotations

import pytest

from homeostat.policies import registry
from homeostat.sim.scenario import catalogue
from homeostat.sim.simulation import RunResult, simulate
from homeostat.store.in_memory import MemoryStore

pytestmark = pytest.mark.slow

HEAD = """
title = "awkward"
engine = "{engine}"
duration = "{duration}"
[workload]
{workload}
[[component]]
name = "src"
kind = "source"
parallelism = {sources}
rate = "5 k/s"
"""
STAGE = """
[[component]]
name = "{name}"
inputs = ["{reads}"]
parallelism = {parallelism}
rate = "{rate}"
"""


def run(
    *parts: str,
    workload: str = 'kind = "constant"\nrate = "1 k/s"',
    duration: str = "1 h",
    engine: str = "dataflow",
    sources: int = 1,
) -> tuple[RunResult, MemoryStore]:
    text = HEAD.format(workload=workload, duration=duration, engine=engine, sources=sources) + "".join(parts)
    scenario = catalogue.loads(text, "awkward")
    store = MemoryStore()
    return simulate(scenario, registry.build("provisioning", scenario.settings), store=store, run="test"), store


def stage(name: str, reads: str, parallelism: int, rate: str, more: str = "") -> str:
    return STAGE.format(name=name, reads=reads, parallelism=parallelism, rate=rate) + more


def actions(result: RunResult) -> list[str]:
    return [taken.action for taken in result.trajectory]


def test_what_waits_for_a_stage_at_its_maximum_does_not_grow_without_end() -> None:
    result, store = run(stage("map", "src", 2, "250/s"), stage("agg", "map", 4, "50/s", "maximum = 12\n"))
    assert len(actions(result)) == 1
    assert result.final_parallelism["agg"] == 12
    assert result.final_parallelism["map"] <= 4
    assert any("at its bound of 12" in alert.text for alert in store.records("test", kinds=("alert",)))


def test_an_hour_without_rows_is_idle_and_the_load_is_taken_when_it_comes_back() -> None:
    zero, back = '{ at = "20 min", rate = "0/s" }', '{ at = "70 min", rate = "1 k/s" }'
    steps = f'kind = "steps"\nsteps = [{{ at = "0 s", rate = "1 k/s" }}, {zero}, {back}]'
    result, _ = run(stage("work", "src", 10, "120/s"), workload=steps, duration="2 h")
    kinds = [action.partition(":")[0] for action in actions(result)]
    assert kinds[0] == "scale-down"
    assert "scale-up" in kinds
    assert result.as_json()["converged"]


def test_silence_is_told() -> None:
    hung = '[[fault]]\nkind = "stuck-sink"\nat = "10 min"\nuntil = "30 min"\n'
    _, store = run(stage("work", "src", 40, "200/s"), "[microbatch]\nexecutors = 8\n", hung, engine="microbatch")
    assert any("no measurement arrived for" in alert.text for alert in store.records("test", kinds=("alert",)))
    assert any("measurements arrive again" in record.text for record in store.records("test", kinds=("symptom",)))


def test_a_mildly_slow_instance_is_replaced_when_nothing_else_explains_the_pressure() -> None:
    slow = '[[fault]]\nkind = "slow-instance"\ncomponent = "work"\ninstance = 2\nfactor = 1.4\nat = "10 min"\n'
    result, _ = run(stage("work", "src", 8, "160/s"), slow)
    assert actions(result)[0] == "replace: replace work-2#0"
    assert not any(action.startswith("scale-up") for action in actions(result))
    assert result.as_json()["converged"]


def test_a_backlog_left_by_an_outage_is_worked_off() -> None:
    hung = '[[fault]]\nkind = "stuck-sink"\nat = "10 min"\nuntil = "30 min"\n'
    result, _ = run(stage("work", "src", 6, "200/s"), hung, duration="2 h")
    assert any(action.startswith("scale-up") for action in actions(result))
    assert result.as_json()["converged"]


def test_peaks_that_keep_coming_back_make_it_shrink_less_readily() -> None:
    spikes = ", ".join(f'{{ at = "{10 * n} min", for = "30 s", factor = 8.0 }}' for n in range(1, 12))
    result, _ = run(
        stage("work", "src", 10, "100/s"),
        workload=f'kind = "constant"\nrate = "100/s"\nspikes = [{spikes}]',
        duration="2 h",
    )
    shrinks = [taken.time_s for taken in result.trajectory if taken.action.startswith("scale-down")]
    assert len([time for time in shrinks if time < 3600.0]) > len([time for time in shrinks if 3600.0 <= time < 6600.0])


def test_a_gap_in_half_of_the_metrics_does_not_condemn_a_right_action() -> None:
    gap = '[[fault]]\nkind = "metric-gap"\nshare = 0.5\n'
    steps = 'kind = "steps"\nsteps = [{ at = "0 s", rate = "1 k/s" }, { at = "20 min", rate = "2 k/s" }]'
    result, _ = run(stage("work", "src", 8, "160/s"), gap, workload=steps)
    assert not any(action.startswith("revert") for action in actions(result))
    assert result.as_json()["converged"]
