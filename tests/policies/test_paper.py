"""The paper flavour: its resolvers' arithmetic, its reading of one moment, and the experiments it was shown on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.configuration import PARALLELISM, Capabilities, Configuration, Knob, KnobSpec
from homeostat.core.digest import ComponentDigest, Digest
from homeostat.core.errors import ConfigError
from homeostat.core.findings import Prediction, Proposal
from homeostat.core.observation import NAN, Observation
from homeostat.core.topology import Topology
from homeostat.core.trial import Trial
from homeostat.core.view import View
from homeostat.policies.paper import PaperJudge, PaperSettings, alert, provisioning_paper, throughput_paper
from homeostat.resolvers.alert import Alert
from homeostat.resolvers.paper_actions import heron_stage_pressure, scale_down_target, scale_up_target
from support.one_thought import only, think, think_batches
from support.trajectories import path, run


@pytest.mark.parametrize(
    ("per_instance_ms", "parallelism", "target"), [((750.0, 0.0), 2, 8), ((400.0, 100.0, 0.0), 3, 6)]
)
def test_herons_own_test_vectors(per_instance_ms: tuple[float, ...], parallelism: int, target: int) -> None:
    assert scale_up_target(heron_stage_pressure(per_instance_ms), parallelism) == target


@pytest.mark.parametrize(
    ("pressure", "parallelism", "fence", "target"),
    [
        (0.2, 4, 4.0, 5),
        (0.5, 10, 4.0, 20),
        (0.8, 2, 4.0, 10),
        (0.9, 1, 4.0, 5),
        (0.9, 1, math.inf, 10),
        (0.9, 2, math.inf, 20),
        (1.0, 1, 4.0, 5),
        (1.0, 1, math.inf, 1000),
        (0.021, 7, 4.0, 8),
    ],
)
def test_scale_up_adds_what_the_held_back_share_needs(
    pressure: float, parallelism: int, fence: float, target: int
) -> None:
    assert scale_up_target(pressure, parallelism, fence) == target


def test_the_summed_pressure_of_a_stage_is_clamped() -> None:
    assert heron_stage_pressure([800.0, 800.0]) == 0.999


@pytest.mark.parametrize(
    ("parallelism", "minimum", "target"), [(10, 1, 8), (4, 1, 3), (2, 1, 1), (1, 1, 1), (10, 9, 9)]
)
def test_scale_down_leaves_four_fifths_and_takes_at_least_one(parallelism: int, minimum: int, target: int) -> None:
    assert scale_down_target(parallelism, 0.8, minimum) == target


def values(proposal: Proposal) -> dict[str, float]:
    return {str(knob): value for knob, value in proposal.patch.values.items()}


def test_pressure_without_skew_scales_the_most_downstream_component_up() -> None:
    proposal = only(
        think(
            provisioning_paper(),
            {
                "flatmap": {"pressured_s": [9.0], "pending_rows": [1e4]},
                "count": {"pressured_s": [5.0, 4.0], "pending_rows": [1e4, 9e3]},
            },
        )
    )
    assert (proposal.kind, proposal.cause, values(proposal)) == (
        "scale-up",
        "under-provisioned",
        {"parallelism.count": 4},
    )
    assert proposal.prediction is not None
    assert proposal.prediction.gain == pytest.approx(math.log(2))
    assert proposal.prediction.touched == ("count",)
    assert proposal.because[0].evidence.figures()["holds_back"] == "flatmap"


def test_a_queue_that_is_long_at_one_instance_only_has_its_worker_replaced() -> None:
    trace = think(
        provisioning_paper(),
        {"count": {"pressured_s": [0.0, 6.0, 0.0], "pending_rows": [10, 1e4, 10], "run_s": [2.5, 10.0, 2.5]}},
    )
    first = trace.proposals[0]
    assert (first.kind, first.cause, set(first.patch.retire)) == ("replace", "slow-instance", {"count-1"})
    assert first.prediction is not None
    assert first.prediction.gain == pytest.approx(math.log(4))
    assert [p.kind for p in trace.proposals] == ["replace", "scale-up"]


HOT: Mapping[str, list[float]] = {
    "pressured_s": [0.0, 6.0, 0.0],
    "pending_rows": [10, 1e4, 10],
    "rows": [1000, 4000, 1000],
}


def test_skew_is_spread_over_twice_as_many_instances_but_not_over_more_than_there_are() -> None:
    assert values(think(provisioning_paper(), {"count": HOT}).proposals[0]) == {"spread.count": 2}
    assert values(think(provisioning_paper(), {"count": HOT}, spread=2).proposals[0]) == {"spread.count": 3}


@pytest.mark.parametrize(("spread", "why"), [(3, "spread.count is 3 already"), (None, "has no spread.count")])
def test_skew_that_cannot_be_spread_is_reported(spread: int | None, why: str) -> None:
    first = think(provisioning_paper(), {"count": HOT}, spread=spread).proposals[0]
    assert (first.kind, first.cause) == ("alert", "data-skew")
    assert why in first.message


def test_nothing_pending_and_no_pressure_shrinks_by_a_fifth() -> None:
    proposal = only(think(provisioning_paper(), {"count": {"rows": [1000.0] * 10}}))
    assert (proposal.kind, values(proposal)) == ("scale-down", {"parallelism.count": 8})
    assert proposal.prediction is not None
    assert proposal.prediction.gain < 0


@pytest.mark.parametrize("pending_rows", [200.0, 1e4])
def test_pending_work_keeps_what_there_is(pending_rows: float) -> None:
    """A row takes 5 ms here, so that 200 rows are a second of work."""
    trace = think(provisioning_paper(), {"count": {"pending_rows": [pending_rows] * 10}})
    assert trace.proposals == ()


def test_a_short_look_decides_nothing() -> None:
    trace = think(provisioning_paper(), {"count": {"rows": [1000.0] * 10, "pressured_s": [5.0] * 10}}, ticks=9)
    assert (trace.symptoms, trace.proposals) == ((), ())


def test_pressure_below_the_noise_filter_is_none() -> None:
    trace = think(provisioning_paper(), {"count": {"pressured_s": [0.19], "pending_rows": [1e4]}})
    assert trace.symptoms == ()


def test_a_queue_that_grows_is_seen_before_it_holds_anything_back() -> None:
    def grow(observation: Observation) -> Observation:
        sample = observation.tasks["count"]
        longer = replace(sample, pending_rows=sample.pending_rows + 11.0 * observation.at_s)
        return replace(observation, tasks={**observation.tasks, "count": longer})

    trace = think(provisioning_paper(), {"count": {"pending_rows": [1e4]}}, damage=grow)
    assert [(s.kind, s.component) for s in trace.symptoms] == [("growing-backlog", "count")]
    assert [d.cause for d in trace.diagnoses] == ["inconclusive"]


def lacking(component: str, *columns: str) -> Callable[[Observation], Observation]:
    def damage(observation: Observation) -> Observation:
        sample = observation.tasks[component]
        blanks: dict[str, Any] = {column: np.full(sample.instances, NAN) for column in columns}
        return replace(observation, tasks={**observation.tasks, component: replace(sample, **blanks)})

    return damage


def test_unknown_pressure_is_said_and_never_taken_for_health() -> None:
    trace = think(provisioning_paper(), {"count": {"rows": [1000.0] * 10}}, damage=lacking("count", "pressured_s"))
    assert {(s.kind, s.component, s.evidence.figures()["detector"]) for s in trace.symptoms} >= {
        ("unknown", "count", "pressure"),
        ("unknown", "", "idle"),
    }
    assert {d.cause for d in trace.diagnoses} == {"inconclusive"}
    assert not any(p.patch for p in trace.proposals)


def test_what_cannot_be_known_is_reported_with_its_reason_once_it_has_stood() -> None:
    diagnosis = think(provisioning_paper(), {}, damage=lacking("count", "pressured_s")).diagnoses[0]
    view = View(300.0, Topology(()), Configuration(), Capabilities(), standing_since_s={("inconclusive", "count"): 0.0})
    (alert,) = Alert().resolve(view, [diagnosis])
    assert alert.message.startswith(
        "The measurements do not show the cause at count (the detector pressure needs pressured_s, which is missing)"
    )
    assert list(Alert().resolve(replace(view, now_s=299.0), [diagnosis])) == []


COLUMNS = ("rows", "run_s", "rows_out", "pending_rows", "pressured_s")
FLOWS = ("rows", "arrival_per_s", "pending_rows")


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    tasks=st.sets(
        st.tuples(st.sampled_from(["source", "flatmap", "count"]), st.sampled_from(COLUMNS), st.integers(0, 3))
    ),
    flows=st.sets(st.sampled_from(FLOWS)),
    ticks=st.sets(st.integers(19, 29), min_size=1),
)
def test_no_subset_of_missing_metrics_leads_to_a_scale_down(
    tasks: set[tuple[str, str, int]], flows: set[str], ticks: set[int]
) -> None:
    def damage(observation: Observation) -> Observation:
        if observation.batch not in ticks:
            return observation
        samples = dict(observation.tasks)
        for name, column, instance in tasks:
            values = getattr(samples[name], column).copy()
            values[instance] = NAN
            samples[name] = replace(samples[name], **{column: values})
        blanks: dict[str, Any] = dict.fromkeys(flows, NAN)
        flow = replace(observation.flows[0], **blanks)
        return replace(observation, tasks=samples, flows=(flow,))

    idle = {name: {"rows": [1000.0] * 4} for name in ("source", "flatmap", "count")}
    trace = think(provisioning_paper(), idle, damage=damage)
    shrinks = [p for p in trace.proposals if p.kind == "scale-down"]
    assert bool(shrinks) == (not tasks and not flows)


def test_sources_grow_by_what_the_objective_lacks() -> None:
    proposal = only(think(throughput_paper(), {}, arrival_per_s=400.0, taken_per_s=100.0, throughput_per_s=400.0))
    assert (proposal.kind, proposal.cause, values(proposal)) == (
        "scale-source",
        "slo-unmet",
        {"parallelism.source": 4},
    )


def test_an_objective_that_is_nearly_met_is_met() -> None:
    trace = think(throughput_paper(), {}, arrival_per_s=400.0, taken_per_s=393.0, throughput_per_s=400.0)
    assert trace.proposals == ()


def test_an_objective_out_of_reach_is_reported() -> None:
    source = Knob(PARALLELISM, "source")
    at_bound = think(
        throughput_paper(),
        {},
        arrival_per_s=400.0,
        taken_per_s=100.0,
        throughput_per_s=400.0,
        bounds={source: KnobSpec(1, 1)},
    )
    assert only(at_bound).message.startswith("The objective is not met at source")
    assert "parallelism.source is at its bound of 1" in only(at_bound).message
    too_little = think(throughput_paper(), {}, arrival_per_s=100.0, throughput_per_s=400.0)
    assert (only(too_little).kind, only(too_little).cause) == ("alert", "source-limited")


def test_the_alert_policy_tells_where_what_and_what_to_do_and_changes_nothing() -> None:
    trace = think(alert(), {"count": {"pressured_s": [0.0, 6.0, 0.0], "pending_rows": [10, 1e4, 10]}})
    proposal = only(trace)
    assert not proposal.patch
    assert proposal.message.startswith("Slow instance at count on count-1 (its senders are held back 60% of the time)")
    assert "What to do: restart it on another host" in proposal.message


def test_batches_that_take_longer_than_their_trigger_get_executors_once() -> None:
    trace = think_batches(provisioning_paper(), seconds=20.0, rows=1000.0, tasks={"count": {"run_s": [9.0] * 4}})
    assert [(s.kind, s.component) for s in trace.symptoms] == [("pressure", "count")]
    proposal = only(trace)
    assert (proposal.kind, values(proposal)) == ("scale-up", {"executors.app": 8})
    assert proposal.prediction is not None
    assert proposal.prediction.touched == ("count", "source", "flatmap")


def test_batches_that_leave_rows_behind_are_under_pressure_though_they_are_quick() -> None:
    trace = think_batches(provisioning_paper(), seconds=3.0, rows=500.0, pending_rows=5e5)
    assert [round(s.severity, 3) for s in trace.symptoms if s.kind == "pressure"] == [0.5]


def test_a_worker_whose_tasks_take_longer_is_replaced() -> None:
    slow = {"count": {"run_s": [4.0, 4.0, 18.0, 4.0]}}
    first = think_batches(provisioning_paper(), seconds=20.0, rows=1000.0, tasks=slow).proposals[0]
    assert (first.kind, set(first.patch.retire)) == ("replace", {"exec-2"})


@pytest.mark.parametrize(("seconds", "target"), [(6.0, {"executors.app": 3}), (8.0, None)])
def test_batches_that_leave_most_of_the_trigger_unused_give_executors_back(
    seconds: float, target: Mapping[str, float] | None
) -> None:
    proposals = think_batches(provisioning_paper(), seconds=seconds).proposals
    assert [values(p) for p in proposals] == ([target] if target else [])


def digests(**pressured: float) -> tuple[Digest, ...]:
    components = {
        name: ComponentDigest(1, 1.0, True, 10.0, 10.0, 1.0, 10.0, 1.0, NAN, share, 0.0, 10.0)
        for name, share in pressured.items()
    }
    return tuple(Digest(10.0 * n, 10.0, n, 1, 10.0, NAN, NAN, 1.0, 0.0, NAN, {}, components) for n in range(12))


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ({"count": 0.5, "flatmap": 0.9}, {"count": 0.0, "flatmap": 0.9}, "helped"),
        ({"count": 0.5, "flatmap": 0.9}, {"count": 0.48, "flatmap": 0.9}, "failed"),
        ({"count": 0.9, "sink": 0.0}, {"count": 0.9, "sink": 0.8}, "unclear"),
        ({"count": 0.9, "sink": 0.3}, {"count": 0.9, "sink": 0.8}, "failed"),
        ({"count": NAN}, {"count": 0.1}, "unclear"),
    ],
)
def test_an_action_is_judged_by_the_pressure_it_was_taken_against(
    before: dict[str, float], after: dict[str, float], verdict: str
) -> None:
    trial = Trial("count", Prediction(0.7), digests(**before), digests(**after), False, 180.0, 180.0)
    outcome = PaperJudge().judge(trial)
    assert outcome is not None
    assert outcome.verdict == verdict
    assert PaperJudge().judge(replace(trial, elapsed_s=170.0)) is None


@pytest.mark.parametrize(("unhealthy", "verdict"), [("", "shrunk"), ("pressure", "harmful")])
def test_shrinking_is_taken_back_when_trouble_follows(unhealthy: str, verdict: str) -> None:
    trial = Trial("count", Prediction(-0.2), (), (), False, 180.0, 180.0, unhealthy=unhealthy)
    outcome = PaperJudge().judge(trial)
    assert outcome is not None
    assert outcome.verdict == verdict


@pytest.mark.parametrize(
    "changed", [{"window_s": 0.0}, {"shrink_factor": 1.0}, {"rate_skew": 0.5}, {"fence": -1.0}, {"noise_filter": NAN}]
)
def test_settings_that_make_no_sense_are_refused_by_name(changed: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(changed))):
        PaperSettings(**changed)


@pytest.mark.slow
def test_e7_climbs_one_stage_at_a_time_and_then_rests() -> None:
    fenced = run("E7", provisioning_paper())
    assert path(fenced, "flatmap", "count") == [(1, 2), (5, 2), (5, 10), (10, 10), (10, 20)]
    assert fenced.healthy_since_s is not None
    free = run("E7", provisioning_paper(PaperSettings(fence=math.inf)))
    assert path(free, "flatmap", "count") == [(1, 2), (10, 2), (10, 20)]
    assert {taken.because.split()[0] for taken in fenced.trajectory} == {"under-provisioned"}


@pytest.mark.slow
def test_e1_shrinks_and_grows_with_the_load_and_ends_without_pressure() -> None:
    result = run("E1", provisioning_paper())
    kinds = [taken.action.partition(":")[0] for taken in result.trajectory]
    falls, rises = kinds.count("scale-down"), kinds.count("scale-up")
    assert kinds == ["scale-down"] * falls + ["scale-up"] * rises
    assert falls >= 2 <= rises
    assert result.healthy_since_s is not None


@pytest.mark.slow
def test_e2_reaches_its_objective_sources_first() -> None:
    result = run("E2", throughput_paper())
    assert result.trajectory[0].action == "scale-source: parallelism.spout = 20"
    assert result.final_parallelism["spout"] == 20
    assert result.as_json()["converged"]


def test_e3_heals_both_problems_the_slow_instance_first() -> None:
    result = run("E3", provisioning_paper())
    kinds = [taken.action.partition(":")[0] for taken in result.trajectory]
    assert kinds.index("replace") < kinds.index("scale-up")
    assert result.healthy_since_s is not None


@pytest.mark.slow
def test_e5_a_misread_instance_is_blacklisted_once_and_the_next_diagnosis_heals() -> None:
    result = run("E5", provisioning_paper(PaperSettings(rate_skew=1.02)))
    first_hour = [taken for taken in result.trajectory if taken.time_s < 4000]
    assert [(t.action.partition(":")[0], t.because) for t in first_hour] == [
        ("adjust-skew", "data-skew at counter"),
        ("revert", "data-skew at counter"),
        ("replace", "slow-instance at counter"),
    ]
    assert all(sample.healthy for sample in result.truth if 2500 < sample.at_s < 4000)
