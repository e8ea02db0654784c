"""The ratio of the horizontal pod autoscaler, and KEDA's by waiting rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.observation import Observation
from homeostat.policies.peers import (
    HpaSettings,
    hpa,
)
from homeostat.policies.peers.hpa import desired_replicas
from support.one_thought import chain, proposed_values, think
from support.trajectories import run


def test_hpa_climbs_by_the_ratio_until_utilisation_is_on_target() -> None:
    result = run("E7", hpa())
    assert len(result.trajectory) > 5
    assert 14 <= result.final_parallelism["flatmap"] <= 16
    assert 28 <= result.final_parallelism["count"] <= 31
    assert result.healthy_since_s is not None


@pytest.mark.parametrize(
    ("now", "metric", "target", "desired"),
    [(4, 0.9, 0.6, 6), (4, 0.65, 0.6, 4), (4, 0.67, 0.6, 5), (10, 0.35, 0.7, 5), (3, 0.0, 0.7, 1)],
)
def test_hpas_ratio(now: int, metric: float, target: float, desired: int) -> None:
    assert desired_replicas(now, metric, target) == desired


def test_hpa_shrinks_only_after_five_minutes_of_wanting_to() -> None:
    assert proposed_values(think(hpa(), chain(10, 3.5), ticks=25)) == {}
    assert proposed_values(think(hpa(), chain(10, 3.5), ticks=40)) == {
        f"parallelism.{name}": 5 for name in ("source", "flatmap", "count")
    }


def test_hpa_shrinks_only_to_the_largest_size_wanted_meanwhile() -> None:
    def busier(observation: Observation) -> Observation:
        if not 200.0 < observation.at_s <= 300.0:
            return observation
        return replace(observation, tasks={n: replace(s, run_s=s.run_s * 1.6) for n, s in observation.tasks.items()})

    trace = think(hpa(), chain(10, 3.5), ticks=40, damage=busier)
    assert proposed_values(trace) == {f"parallelism.{name}": 8 for name in ("source", "flatmap", "count")}


def test_keda_scales_by_the_rows_that_wait() -> None:
    policy = hpa(HpaSettings(lag_rows=1000.0))
    tasks = {**chain(2, 7.0), "count": {**chain(2, 7.0)["count"], "pending_rows": [4000.0, 4000.0]}}
    assert proposed_values(think(policy, tasks)) == {"parallelism.count": 8}
    assert proposed_values(think(policy, chain(2, 7.0), pending_rows=6000.0)) == {
        "parallelism.source": 6,
        "parallelism.flatmap": 6,
    }
