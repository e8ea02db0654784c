"""The formula of Flink's autoscaler: target utilisation, room to catch up, delayed scale-down."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest

from homeostat.core.observation import Observation
from homeostat.policies.peers import (
    FlinkSettings,
    flink,
)
from homeostat.policies.peers.flink import aligned, scalability, target_capacity, true_rate_per_s
from support.one_thought import Columns, chain, only, proposed_values, think


def test_flinks_target_capacity_has_room_to_catch_up_and_to_restart() -> None:
    assert target_capacity(700.0, 10.0, 0.7, 300.0, 1800.0) == pytest.approx(10 + 700 / 6 + 1000)


@pytest.mark.parametrize(
    ("pairs", "alpha"),
    [
        ([(1, 100.0), (2, 200.0), (4, 400.0)], 1.0),
        ([(1, 100.0), (2, 120.0), (4, 130.0)], 0.5),
        ([(1, 100.0), (2, 110.0)], 1.0),
        ([(2, 200.0), (4, 320.0), (8, 640.0)], 0.81),
    ],
)
def test_flinks_scalability_is_fitted_and_kept_within_bounds(pairs: list[tuple[float, float]], alpha: float) -> None:
    assert scalability(pairs) == pytest.approx(alpha, abs=0.005)


@pytest.mark.parametrize(
    ("switch", "least", "rate_per_s"),
    [(0.2, 2, 350.0), (0.1, 2, 300.0), (0.1, 3, 350.0)],
)
def test_flinks_own_vectors_for_the_observed_rate(switch: float, least: int, rate_per_s: float) -> None:
    """testObservedTprEvaluation: 350 by busy time, 200 and 400 observed."""
    assert true_rate_per_s(350.0, (200.0, 400.0), switch, least) == rate_per_s


@pytest.mark.parametrize(
    ("now", "partitions", "factor", "least", "most", "parallelism"),
    [
        (6, 36, 0.8, 1, 10**9, 6),
        (16, 128, 1.5, 1, 10**9, 32),
        (200, 720, 1.3, 1, 10**9, 360),
        (10, 128, 2.5, 1, 10**9, 32),
        (6, 720, 0.8, 1, 700, 5),
        (8, 720, 0.8, 8, 700, 8),
        (16, 128, 1.5, 60, 10**9, 64),
        (200, 720, 2.0, 1, 300, 240),
        (200, 720, 2.0**31, 1, 600, 360),
    ],
)
def test_flinks_own_vectors_for_the_alignment(
    now: int, partitions: int, factor: float, least: int, most: int, parallelism: int
) -> None:
    """testParallelismComputationWithAdjustment and testParallelismComputationWithLimit."""
    target = min(max(math.ceil(now * factor), least), most, partitions)
    assert aligned(target, partitions, least, most) == parallelism


def test_flink_trusts_a_lagging_source_more_than_its_busy_time() -> None:
    """Busy for 6 s of 10 with 100 rows/s promises 167 rows/s, but with a minute of lag it processed only 100."""
    busy = chain(10, 6.0, rows=100.0)
    trace = think(flink(), busy, pending_rows=6_000.0, ticks=130)
    figures = {d.component: d.evidence.figures() for d in only(trace).because}
    assert figures["source"]["true rate_per_s"] == pytest.approx(100.0)


def test_flink_rests_within_its_bounds_and_before_its_window_is_full() -> None:
    assert proposed_values(think(flink(), chain(1, 9.9), ticks=130)) == {}
    assert proposed_values(think(flink(), chain(1, 10.0), pending_rows=18_000.0, ticks=119)) == {}


def test_flink_scales_all_vertices_for_the_load_and_its_backlog() -> None:
    """100 rows/s and a lag of 18,000: 10 + 100/6 + 100/0.7 = 169.5 against a capacity of 100."""
    tasks = {**chain(10, 10.0, rows=100.0), "count": {"rows": [500.0] * 2, "rows_out": [0.0] * 2, "run_s": [9.0] * 2}}
    trace = think(flink(), tasks, pending_rows=18_000.0, ticks=130)
    assert proposed_values(trace) == {"parallelism.source": 17, "parallelism.flatmap": 17, "parallelism.count": 4}
    assert only(trace).because[0].evidence.figures()["target capacity_per_s"] == pytest.approx(169.5, abs=0.1)


def test_flink_delays_shrinking_and_never_shrinks_with_a_backlog() -> None:
    idle = chain(10, 1.0, rows=100.0)
    assert proposed_values(think(flink(), idle, ticks=300)) == {}
    assert proposed_values(think(flink(), idle, ticks=370)) == {
        f"parallelism.{n}": 4 for n in ("source", "flatmap", "count")
    }
    by_busy_time = flink(FlinkSettings(observed_least=10_000))
    assert proposed_values(think(by_busy_time, idle, pending_rows=31_000.0, ticks=370)) == {}


def test_flink_shrinks_only_to_the_largest_size_recommended_meanwhile() -> None:
    def busy_half_an_hour_ago(observation: Observation) -> Observation:
        if not 1500.0 < observation.at_s <= 2400.0:
            return observation
        tasks = {name: replace(s, run_s=s.run_s * 5.0) for name, s in observation.tasks.items()}
        return replace(observation, tasks=tasks)

    tasks = chain(10, 1.0, rows=100.0)
    trace = think(flink(), tasks, ticks=370, damage=busy_half_an_hour_ago)
    assert proposed_values(trace) == {f"parallelism.{name}": 8 for name in ("source", "flatmap", "count")}


def test_flink_can_allow_for_what_larger_sizes_gained_less() -> None:
    changed = FlinkSettings(observed_scalability=True)
    trace = think(flink(changed), chain(1, 10.0), pending_rows=18_000.0, ticks=130)
    assert only(trace).because[0].evidence.figures()["scalability"] == 1.0


def idle(name: str) -> Mapping[str, Columns]:
    if name == "spark-dynamic-allocation":
        columns = {"rows": [500.0] * 2 + [0.0] * 8, "run_s": [0.5] * 2 + [0.0] * 8}
        return dict.fromkeys(("source", "flatmap", "count"), columns)
    return chain(10, 0.5, rows=100.0)
