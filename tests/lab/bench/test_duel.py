"""`homeostat bench duel`: the runs, and who wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homeostat.cli import duel_picture
from homeostat.core.errors import ConfigError
from homeostat.lab.bench import duel
from homeostat.lab.bench.duel_loads import MICROBATCH, from_trace
from homeostat.recorded_data.load import Load


def steps(name: str) -> Any:
    """Half an hour in which the load doubles for ten minutes."""
    times_s = 30.0 * np.arange(61, dtype=np.float64)
    return from_trace(Load(name, times_s, np.where((times_s >= 600) & (times_s < 1200), 100.0, 50.0)), 18.0)


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    ring = duel.Ring(MICROBATCH, most=4)
    return duel.measure(
        [steps("test.csv")], [steps("tune.csv")], [ring], policies=("dstream", "largest"), seeds=2, budget=2
    )


def test_every_contender_runs_with_the_same_seeds(result: dict[str, Any]) -> None:
    (one,) = result["rounds"]
    assert one["trace"] == "test.csv"
    assert {"dstream", "largest"} <= set(one["contenders"])
    assert all(len(each["runs"]) == 2 for each in one["contenders"].values())
    assert one["contenders"]["largest"]["violation_s"]["median"] == 0.0
    assert one["contenders"]["largest"]["cost_over_largest"]["median"] == pytest.approx(1.0, abs=0.05)
    assert one["contenders"]["dstream"]["cost_over_largest"]["median"] < 1.0


def test_settings_are_searched_on_the_tuning_trace(result: dict[str, Any]) -> None:
    assert result["tuning"]["dstream"]["tried"] == 2
    assert "largest" not in result["tuning"]


def test_a_trace_to_test_on_cannot_be_tuned_on() -> None:
    with pytest.raises(ConfigError, match="both for testing and for tuning"):
        duel.measure([steps("same.csv")], [steps("same.csv")], [duel.Ring(MICROBATCH, most=4)], seeds=1)


def test_the_picture_shows_each_round(result: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="drawing requires matplotlib")
    duel_picture.draw(result, tmp_path / "duel.svg")
    text = (tmp_path / "duel.svg").read_text(encoding="utf-8")
    assert "test.csv" in text
    assert "dstream" in text


def run(violation_s: float, cost: float) -> dict[str, float]:
    names = ("p95_lag_s", "p99_lag_s", "actions", "needless", "worst_pause_s", "cost_over_largest")
    return {"violation_s": violation_s, "cost_over_oracle": cost, "duration_s": 3600.0} | dict.fromkeys(names, 0.0)


def test_half_the_violations_at_the_same_cost_win() -> None:
    verdict = duel.verdict_json({"provisioning": [run(50.0, 1.1)], "hpa": [run(100.0, 1.1)], "ds2": [run(900.0, 1.0)]})
    assert verdict["ours"]["best_other"] == "hpa"
    assert verdict["ours"]["wins"]
    assert verdict["dominates"] == {"provisioning": ["hpa"]}
    lost = duel.verdict_json({"provisioning": [run(60.0, 1.1)], "hpa": [run(100.0, 1.1)]})
    assert not lost["ours"]["wins"]
    cheaper = duel.verdict_json({"provisioning": [run(100.0, 0.9)], "hpa": [run(100.0, 1.1)]})
    assert cheaper["ours"]["wins"]
