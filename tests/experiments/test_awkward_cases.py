"""Situations that a loop easily gets wrong: each was got wrong once."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from homeostat.core.actions import REVERT, SCALE_UP
from homeostat.core.records import ActionContent, OutcomeContent, ReceiptContent, Record, with_content
from homeostat.lab.demonstration import SETTINGS
from homeostat.policies import registry
from homeostat.runtime.manager import Manager
from homeostat.sim.scenario import catalogue
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import RunResult, build_engine, simulate
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
    result, store = run(
        stage("map", "src", 2, "250/s"), stage("agg", "map", 4, "50/s", "maximum = 12\n"), duration="30 min"
    )
    assert len(actions(result)) == 1
    assert result.final_parallelism["agg"] == 12
    assert result.final_parallelism["map"] <= 4
    assert any("at its bound of 12" in alert.text for alert in store.records("test", kinds=("alert",)))


def test_an_hour_without_rows_is_idle_and_the_load_is_taken_when_it_comes_back() -> None:
    zero, back = '{ at = "20 min", rate = "0/s" }', '{ at = "70 min", rate = "1 k/s" }'
    steps = f'kind = "steps"\nsteps = [{{ at = "0 s", rate = "1 k/s" }}, {zero}, {back}]'
    result, _ = run(stage("work", "src", 10, "120/s"), workload=steps, duration="90 min")
    kinds = [action.partition(":")[0] for action in actions(result)]
    assert kinds[0] == "scale-down"
    assert "scale-up" in kinds
    assert result.as_json()["converged"]


def test_silence_is_reported() -> None:
    hung = '[[fault]]\nkind = "stuck-sink"\nat = "10 min"\nuntil = "30 min"\n'
    _, store = run(stage("work", "src", 40, "200/s"), "[microbatch]\nexecutors = 8\n", hung, engine="microbatch")
    assert any("no measurement arrived for" in alert.text for alert in store.records("test", kinds=("alert",)))
    assert any("measurements arrive again" in record.text for record in store.records("test", kinds=("symptom",)))


def test_a_mildly_slow_instance_is_replaced_when_nothing_else_explains_the_pressure() -> None:
    slow = '[[fault]]\nkind = "slow-instance"\ncomponent = "work"\ninstance = 2\nfactor = 1.4\nat = "10 min"\n'
    result, _ = run(stage("work", "src", 8, "160/s"), slow, duration="40 min")
    assert actions(result)[0] == "replace: replace work-2#0"
    assert not any(action.startswith("scale-up") for action in actions(result))
    assert result.as_json()["converged"]


def test_a_backlog_left_by_an_outage_is_worked_off() -> None:
    hung = '[[fault]]\nkind = "stuck-sink"\nat = "5 min"\nuntil = "15 min"\n'
    result, _ = run(stage("work", "src", 6, "200/s"), hung, duration="45 min")
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
    steps = 'kind = "steps"\nsteps = [{ at = "0 s", rate = "1 k/s" }, { at = "10 min", rate = "2 k/s" }]'
    result, _ = run(stage("work", "src", 8, "160/s"), gap, workload=steps, duration="30 min")
    assert not any(action.startswith("revert") for action in actions(result))
    assert result.as_json()["converged"]


# Like the demonstration: two executors, a load that doubles, and the demonstration's settings.
DEMONSTRATION = Scenario(
    name="demonstration",
    title="",
    engine=MicrobatchSpec(executors=2, trigger_s=3.0, driver_s=0.2, commit_s=0.1),
    duration_s=240.0,
    components=(
        ComponentSpec("scan", "source", parallelism=6, rate_per_s=950.0),
        ComponentSpec("count", inputs=("scan",), parallelism=2, rate_per_s=9000.0),
    ),
    workload=WorkloadSpec("steps", steps=((0.0, 850.0), (40.0, 1700.0)), noise=Noise(0.05, 0.5)),
)


def demonstrated(scenario: Scenario, until_s: float) -> list[Record]:
    settings = {key: value for key, value in tomllib.loads(SETTINGS).items() if key != "policy"}
    engine, store = build_engine(scenario), MemoryStore()
    manager = Manager(engine, registry.build("provisioning", settings), store, "run")
    manager.start()
    while engine.now_s < until_s:
        manager.advance(engine.now_s + 1.0)
    return store.records("run")


# Until the judge heard what the detectors see in the same cycle, each of these ended with a revert.
@pytest.mark.parametrize(("seed", "factor", "after_s"), [(1, 1.5, 11.0), (3, 2.0, 8.0), (4, 3.0, 11.0)])
def test_a_right_scale_up_is_not_taken_back_when_an_executor_turns_slow_while_it_is_judged(
    seed: int, factor: float, after_s: float
) -> None:
    scenario = replace(DEMONSTRATION, seed=seed)
    before = with_content(demonstrated(scenario, 110.0), ReceiptContent)
    in_effect_s = min(record.at_s for record, receipt in before if receipt.applied)
    fault = FaultSpec("slow-instance", in_effect_s + after_s, instance=0, factor=factor)
    records = demonstrated(replace(scenario, faults=(fault,)), in_effect_s + 60.0)
    kinds = [action.action_kind for _, action in with_content(records, ActionContent)]
    assert kinds[0] == SCALE_UP
    assert REVERT not in kinds
    verdicts = [outcome.verdict for _, outcome in with_content(records, OutcomeContent) if outcome.action == "a-1"]
    assert verdicts in (["helped"], ["confounded"]), "the slow executor is not the fault of the action"
