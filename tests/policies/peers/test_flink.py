"""The formula of Flink's autoscaler: target utilisation, room to catch up, delayed scale-down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from homeostat.core.observation import Observation
from homeostat.policies.peers import (
    FlinkSettings,
    flink,
)
from homeostat.policies.peers.flink import scalability, target_capacity
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
    assert proposed_values(think(flink(), idle, pending_rows=31_000.0, ticks=370)) == {}


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
