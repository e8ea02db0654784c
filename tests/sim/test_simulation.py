"""A simulated run is summed up by what really happened in it."""

from __future__ import annotations

from homeostat.log_views.watched_model import WATCHING
from homeostat.sim.simulation import build_engine, interval_s, simulate
from support.models import scenario


def test_a_run_that_nobody_changes_has_no_actions_and_reports_its_health_and_cost() -> None:
    result = simulate(scenario(), WATCHING, mode="observe").as_json()
    assert (result["steps"], result["trajectory"], result["converged"]) == (0, [], True)
    assert result["instance_seconds"] >= result["oracle_instance_seconds"] > 0
    assert result["final_parallelism"]["executors"] == 2


def test_the_interval_of_a_micro_batch_scenario_is_its_trigger() -> None:
    assert interval_s(scenario()) == 10.0
    assert build_engine(scenario()).now_s == 0.0
