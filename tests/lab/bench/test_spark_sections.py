"""The page reads the figures of the benches on Spark as these write them."""

from __future__ import annotations

from typing import Any

from homeostat.lab.bench import heal, overhead, skew, twin
from homeostat.lab.bench.result_tables import Table
from homeostat.lab.bench.spark_sections import SECTIONS
from homeostat.lab.chaos import tally
from homeostat.lab.row_ledger import RowDifferences

BY_BENCH = {section.bench: section for section in SECTIONS}


def tables(bench: str, figures: dict[str, Any]) -> list[Table]:
    return list(BY_BENCH[bench].tables(figures))


def test_predictions_of_each_side_are_shown() -> None:
    names = ("batch_error", "ratio_error", "throughput_error", "saturation_error")
    side = {**{f"median_{name}": 0.05 for name in names}, "coverage": 0.8, "accepted": True}
    caught_up = {"setup": "2 executors", "caught_up_s": 60.0, "predicted_s": 80.0, "accepted": False}
    latency = {"objective_p95_s": 10.0, "p95_s": 9.0, "executors": 2.5, "accepted": True}
    (only,) = tables("models", {"simulator": side})
    assert only.rows == (("simulator", "5 %", "5 %", "5 %", "5 %", "80 %"),)
    assert BY_BENCH["models"].reached({"simulator": side}) is True
    both = {"simulator": side, "spark": {**side, "catch_up": [caught_up], "latency": latency}}
    assert tables("models", both)[1].rows == (("2 executors", "60", "80", "no"),)
    assert BY_BENCH["models"].reached(both) is False


def test_the_twin_is_shown_with_its_experiments() -> None:
    side = {"actions": ["scale-up"], "executors": 4}
    experiments = {
        "E1": {"spark": side, "simulator": {**side, "actions": []}, "same_actions": False, "same_executors": True}
    }
    figures = {"median_error": 0.1, "coverage": 0.8, "experiments": experiments}
    durations, course = tables("twin", figures)
    assert durations.rows[0][1] == "10 %"
    assert course.rows == (("E1", "scale-up; 4 executors at the end", "nothing; 4 executors at the end"),)
    assert BY_BENCH["twin"].reached({**figures, "accepted": twin.is_accepted(figures)}) is False


def test_replacements_faults_and_overhead_are_shown() -> None:
    healed, _ = tables("heal", heal.summary([], [], (2.0,)))
    assert healed.rows == (("2", "0", "–", "–", "–"),)
    chaos = tally.summary([], [], RowDifferences(rows=5), leftovers=[])
    assert ("unexpected actions", "0") in tables("chaos", chaos)[0].rows
    assert BY_BENCH["chaos"].reached(chaos) is False
    segments = [overhead.Segment(managed, 1, rows, 1.0, 1.0) for managed, rows in ((True, 95.0), (False, 100.0))]
    sides = {side: {"cpu_s": 0.1, "batch_s": 1.0} for side in ("with", "without")}
    figures = {**overhead.throughput_json(segments), "source": "kafka", "driver_cpu_s_per_batch": {"10": sides}}
    throughput, driver = tables("overhead", figures)
    assert throughput.rows[0] == ("throughput with ÷ without the manager", "0.95")
    assert driver.rows == (("10", "0.1", "0.1", "1", "1"),)


def test_spread_keys_and_pauses_are_shown() -> None:
    case = skew.cases([1.0])[0]
    (spread,) = tables("skew", {"simulator": {case.name: skew.comparison_json(case, 100.0, 300.0, 400.0)}, "setup": {}})
    assert spread.rows[0][3:] == ("100", "300", "400", "3", "0.75")
    pauses = {
        "rescale": {"verified": {"pause_s": 9.0}, "not_verified": {"pause_s": 7.0}},
        "restart_s": {"from_a_snapshot": 1.0, "from_a_changelog": 2.0},
    }
    (state,) = tables("state", {"keys": {"10000": pauses}})
    assert state.rows == (("10,000", "9", "7", "1", "2"),)
