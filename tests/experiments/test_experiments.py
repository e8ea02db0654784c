"""The experiments of the Dhalion paper and of DS2, judged on the trajectory: what was done, in what order, and what
came of it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import pytest

from homeostat.core.policy_definition import Policy
from homeostat.core.records import Record
from homeostat.policies import registry
from homeostat.sim.referee import AppliedAction
from homeostat.sim.scenario import catalogue
from homeostat.sim.scenario.spec import Scenario
from homeostat.sim.scenario.wrong_threshold import MISREAD, MissetDiagnoser, TrustingResolver
from homeostat.sim.simulation import RunResult, simulate
from homeostat.store.in_memory import MemoryStore

pytestmark = pytest.mark.slow

PAPER = "provisioning.paper"
# Steps of 15 minutes instead of 40. The runs at full length are compared with recorded ones in `make soak`.
SOONER = 0.375


def load(name: str, pace: float = 1.0) -> Scenario:
    """A shipped scenario. With a smaller `pace`, its loads and faults follow each other sooner."""
    scenario = catalogue.load(name)
    workload = scenario.workload
    return replace(
        scenario,
        duration_s=pace * scenario.duration_s,
        workload=replace(workload, steps=tuple((pace * at_s, rate) for at_s, rate in workload.steps)),
        faults=tuple(replace(f, at_s=pace * f.at_s, until_s=pace * f.until_s) for f in scenario.faults),
    )


def run(
    name: str, policy: str = "", hours: float = 0.0, pace: float = 1.0, **settings: bool
) -> tuple[RunResult, MemoryStore]:
    return _run(name, policy or catalogue.load(name).policy, hours, pace, **settings)


@cache
def _run(name: str, policy: str, hours: float, pace: float, **settings: bool) -> tuple[RunResult, MemoryStore]:
    """Each run once, whatever the tests that judge it."""
    scenario = load(name, pace)
    if hours:
        scenario = replace(scenario, duration_s=hours * 3600)
    built = registry.build(policy, {**scenario.settings, **({"paper": settings} if settings else {})})
    store = MemoryStore()
    return simulate(scenario, built, store=store, run="test"), store


def kinds(result: RunResult) -> list[str]:
    return [taken.action.partition(":")[0] for taken in result.trajectory]


def path(result: RunResult, *components: str) -> list[tuple[float, ...]]:
    return [tuple(taken.parallelism[name] for name in components) for taken in result.trajectory]


def at(result: RunResult, time_s: float) -> list[AppliedAction]:
    return [taken for taken in result.trajectory if taken.time_s >= time_s]


@pytest.mark.parametrize("policy", ["provisioning", PAPER])
def test_e1_scales_down_when_the_load_falls_then_up_when_it_rises_and_ends_healthy(policy: str) -> None:
    result, _ = run("E1", policy, pace=SOONER)
    falls_s, rises_s = 2400.0 * SOONER, 4800.0 * SOONER
    times_s: dict[str, list[float]] = {"scale-down": [], "scale-up": []}
    for kind, taken in zip(kinds(result), result.trajectory, strict=True):
        times_s[kind].append(taken.time_s)
    assert times_s["scale-down"]
    assert all(falls_s < at_s < rises_s for at_s in times_s["scale-down"])
    assert times_s["scale-up"]
    assert all(at_s > rises_s for at_s in times_s["scale-up"])
    assert result.as_json()["converged"]
    assert result.truth[-1].healthy


def test_e1_takes_two_steps_in_the_default_flavour_none_of_them_needless() -> None:
    result, _ = run("E1", pace=SOONER)
    assert kinds(result) == ["scale-down", "scale-up"]
    assert result.as_json()["needless_actions"] == 0


@pytest.mark.parametrize("policy", ["throughput", "throughput.paper"])
def test_e2_reaches_the_throughput_objective_from_one_instance_each(policy: str) -> None:
    result, _ = run("E2", policy, hours=1.0)
    assert result.as_json()["converged"]
    assert result.final_parallelism["spout"] >= 20
    late = [sample for sample in result.truth if sample.at_s > 0.9 * result.duration_s]
    throughput_per_s = catalogue.load("E2").objective.throughput_per_s or 0.0
    assert sum(s.taken_per_s for s in late) / len(late) >= 0.98 * throughput_per_s


def test_e2_in_the_paper_flavour_scales_the_sources_before_the_stages_they_put_under_pressure() -> None:
    result, _ = run("E2", "throughput.paper", hours=1.0)
    assert kinds(result)[0] == "scale-source"
    assert "scale-up" in kinds(result)


@pytest.mark.parametrize("policy", ["provisioning", PAPER])
def test_e3_heals_both_problems_the_slow_instance_first(policy: str) -> None:
    result, _ = run("E3", policy, hours=0.75)
    order = kinds(result)
    assert order[0] == "replace"
    assert "scale-up" in order[1:]
    assert result.as_json()["converged"]
    assert result.as_json()["needless_actions"] == 0


def test_e4_noise_leads_to_no_action() -> None:
    result, _ = run("E4", hours=0.75)
    assert kinds(result) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", ["E4", "E4-microbatch"])
def test_e4_noise_leads_to_no_action_all_day(name: str) -> None:
    result, _ = run(name)
    assert kinds(result) == []


def _misread_actions(store: MemoryStore) -> list[Record]:
    return [
        r for r in store.records("test", kinds=("action",)) if r.body["cause"] == MISREAD and r.body["kind"] != "revert"
    ]


def test_e5_a_misread_cause_is_seen_through_and_the_next_diagnosis_heals() -> None:
    result, store = run("E5", hours=0.7)
    assert kinds(result) == ["scale-up", "revert", "replace"]
    assert [taken.because for taken in result.trajectory] == [
        f"{MISREAD} at splitter",
        f"{MISREAD} at splitter",
        "slow-instance at counter",
    ]
    verdicts = [str(r.body["verdict"]) for r in store.records("test", kinds=("outcome",))]
    assert verdicts == ["failed", "helped"]
    assert [taken.needless for taken in result.trajectory] == [True, False, False]
    assert result.as_json()["converged"]


def test_e5_the_ineffective_action_rests_and_is_tried_again_once_the_context_changes() -> None:
    """With nothing but the mis-set diagnoser the fault stays, and so does the temptation."""
    scenario, changes_s = load("E5", pace=0.5), 2100.0
    default = registry.build("provisioning")
    only: Policy = replace(default, diagnosers=(MissetDiagnoser(),), resolvers=(TrustingResolver(),))
    store = MemoryStore()
    simulate(replace(scenario, duration_s=2700.0), only, store=store, run="test")
    times = [record.at_s for record in _misread_actions(store)]
    before, after = [t for t in times if t < changes_s], [t for t in times if t >= changes_s]
    assert 1 <= len(before) <= 5
    rests = [later - sooner for sooner, later in itertools.pairwise(before)]
    assert all(later > sooner for sooner, later in itertools.pairwise(rests))
    assert after
    assert after[0] - changes_s < 300.0
    rejections = [str(r.body["reason"]) for r in store.records("test", kinds=("rejection",))]
    assert any(reason.startswith("memory: did not help") for reason in rejections)


def test_e5_in_the_paper_flavour_the_ineffective_action_is_blacklisted() -> None:
    scenario = replace(catalogue.load("E5"), duration_s=3600.0)
    policy = registry.build(PAPER, {"paper": {"rate_skew": 1.02}})
    store = MemoryStore()
    result = simulate(scenario, policy, store=store, run="test")
    assert kinds(result)[:3] == ["adjust-skew", "revert", "replace"]
    assert kinds(result).count("adjust-skew") == 1
    assert result.as_json()["converged"]


def test_e6_names_the_hot_key_and_heals_it_at_every_share() -> None:
    result, store = run("E6", hours=0.5, pace=0.4)
    steps_s = [fault.at_s for fault in load("E6", pace=0.4).faults]
    acted = [t for t in result.trajectory if t.action.startswith("adjust-skew")]
    assert acted[0].because == "data-skew at counter"
    assert acted[0].time_s - steps_s[0] < 120.0
    for start_s in steps_s:
        settled = [s for s in result.truth if start_s + 120.0 < s.at_s < start_s + 350.0]
        assert settled
        assert all(sample.healthy for sample in settled)
    causes = {str(r.body.get("cause")) for r in store.records("test", kinds=("action",), since_s=steps_s[0])}
    assert causes == {"data-skew"}


def test_e6_in_micro_batches_is_healed_at_every_share_and_gathered_when_the_key_has_cooled() -> None:
    result, store = run("E6-microbatch", hours=0.7, pace=SOONER)
    faults = load("E6-microbatch", SOONER).faults
    steps_s, over_s = [fault.at_s for fault in faults], faults[-1].until_s
    assert kinds(result) == ["adjust-skew", "gather"]
    assert [t.because for t in result.trajectory] == ["data-skew at counter", "needless-spread at counter"]
    assert result.trajectory[0].time_s - steps_s[0] < 180.0
    assert 0.0 < result.trajectory[1].time_s - over_s < 600.0
    for start_s in (*steps_s, over_s):
        settled = [s for s in result.truth if start_s + 120.0 < s.at_s < start_s + 450.0]
        assert settled
        assert all(sample.healthy for sample in settled)
    assert result.as_json()["needless_actions"] == 0
    assert "hash-imbalance" not in {str(r.body.get("cause")) for r in store.records("test", kinds=("diagnosis",))}


def test_e7_the_paper_flavour_climbs_one_stage_at_a_time_the_most_downstream_first() -> None:
    result, _ = run("E7", PAPER)
    assert path(result, "flatmap", "count") == [(1, 2), (5, 2), (5, 10), (10, 10), (10, 20)]
    assert result.as_json()["needless_actions"] == 0


def test_e7_without_the_fence_the_paper_flavour_needs_three_steps() -> None:
    result, _ = run("E7", PAPER, fence=False)
    assert path(result, "flatmap", "count") == [(1, 2), (10, 2), (10, 20)]


def test_e7_herons_sum_and_clamp_over_provisions() -> None:
    result, _ = run("E7", "heron")
    assert path(result, "flatmap", "count")[-1] == (25, 50)


def test_e7_the_default_flavour_is_at_the_known_minimum_in_fewer_steps_than_the_paper() -> None:
    result, _ = run("E7", hours=0.5)
    assert path(result, "flatmap", "count") == [(10, 20)]
    assert result.as_json()["time_to_healthy_s"] <= 60.0
    assert result.as_json()["needless_actions"] == 0


def test_e8_goes_up_and_down_to_the_optimum() -> None:
    result, _ = run("E8")
    assert path(result, "flatmap", "count") == [(19, 11), (10, 6)]
    assert result.as_json()["needless_actions"] == 0


def test_e9_sizes_every_stage_within_one_instance_of_the_optimum() -> None:
    result, _ = run("E9", hours=0.5)
    needed = {knob.scope: value for knob, value in result.truth[-1].needed.items()}
    assert all(0 <= result.final_parallelism[name] - value <= 1 for name, value in needed.items())


@pytest.mark.parametrize("pace", [pytest.param(1.0, marks=pytest.mark.soak), SOONER])
def test_the_same_loop_regulates_micro_batches(pace: float) -> None:
    """Executors that were added for the backlog are removed step by step."""
    result, _ = run("E1-microbatch", pace=pace)
    assert kinds(result)[:2] == ["scale-down", "scale-up"]
    assert set(kinds(result)[2:]) <= {"scale-down"}
    assert result.as_json()["converged"]
    assert result.as_json()["needless_actions"] == 0
