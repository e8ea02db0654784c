"""The live view of a simulation."""

from __future__ import annotations

from homeostat.cli.live_display import rates, sparkline
from homeostat.cli.scenario_arguments import load_scenario
from homeostat.sim.truth import TruthSample


def test_a_rate_that_is_to_be_reached_is_drawn_above_the_rate() -> None:
    truth = [TruthSample(10.0, 10.0, 900.0, 800.0, 0.0, False, {}, {})]

    def labels(scenario: str) -> list[str]:
        return [line.split()[0] for line in str(rates(truth, load_scenario(scenario), 60)).splitlines()]

    assert labels("E2") == ["objective", "load", "throughput", "backlog"]
    assert labels("E1") == ["load", "throughput", "backlog"]


def test_a_sparkline_spans_the_whole_run_and_leaves_the_future_blank() -> None:
    assert sparkline([10, 20, 30, 40], [0, 1, 2, 4], 80, 4, 8) == "▁▃▅█    "
    assert sparkline([], [], 80, 0, 4) == "    "
    assert sparkline([80], [0], 80, 0, 4) == "   ▁"
