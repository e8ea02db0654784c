"""The page reads the figures that the benches write, and knows when a target is reached."""

from __future__ import annotations

from typing import Any

import numpy as np

from homeostat.lab.bench import duel, forecast, preempt
from homeostat.lab.bench.result_tables import Section
from homeostat.lab.bench.simulated_sections import SECTIONS
from homeostat.models.forecast import CANDIDATES
from homeostat.recorded_data.load import Load

BY_BENCH = {section.bench: section for section in SECTIONS}


def verdicts(section: Section, figures: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(each.other, each.figure, each.verdict) for each in section.contests(figures)}


def fought(violation_s: float, cost: float) -> list[dict[str, Any]]:
    rest = dict.fromkeys(("p95_lag_s", "p99_lag_s", "actions", "needless", "worst_pause_s", "cost_over_largest"), 1.0)
    return [{**rest, "violation_s": violation_s, "cost_over_oracle": cost, "duration_s": 3600.0}]


def test_a_duel_is_won_against_the_best_other_policy() -> None:
    section = BY_BENCH["duel"]
    for cost, reached in ((1.1, True), (1.4, False)):
        contenders = {"provisioning": fought(10.0, cost), "hpa": fought(50.0, 1.2), "ds2": fought(900.0, 1.0)}
        figures = {"rounds": [{"engine": "microbatch", "trace": "x.csv", **duel.verdict_json(contenders)}]}
        assert section.reached(figures) is reached
        assert ("hpa", "violation s", "wins") in verdicts(section, figures)
        (table,) = section.tables(figures)
        assert table.rows[0][:4] == ("microbatch", "x.csv", "provisioning", "10")
    alone = {"rounds": [{"engine": "microbatch", "trace": "x.csv", **duel.verdict_json({"hpa": fought(1.0, 1.0)})}]}
    assert section.reached(alone) is None


def test_a_forecast_is_compared_with_reacting() -> None:
    section = BY_BENCH["preempt"]
    runs = {
        name: [{"violation_s": seconds, "executor_hours": 20.0, "actions": 3, "ahead": 1}]
        for name, seconds in (("ahead", 30.0), ("reactive", 100.0), ("oracle", 0.0))
    }
    figures = {"cases": {"a day": preempt.verdict_json(runs)}}
    assert section.reached(figures) is True
    assert verdicts(section, figures) == {
        ("reactive", "seconds behind", "wins"),
        ("reactive", "executor hours", "equal"),
    }
    policies, ratios = section.tables(figures)
    assert policies.rows[0] == ("a day", "ahead", "30", "20", "3", "1")
    assert ratios.rows == (("a day", "0.3", "1"),)


def test_forecasts_are_compared_with_each_candidate() -> None:
    section, times_s = BY_BENCH["forecast"], np.arange(240, dtype=np.float64) * 3600.0
    rates = np.asarray(100.0 + 50.0 * np.sin(times_s / 86_400.0 * 2.0 * np.pi), dtype=np.float64)
    load = Load("x.csv", times_s, rates)
    figures = forecast.measure([load], horizons_s=[3600.0], origins=4, candidates=CANDIDATES[:2])
    by_forecast, coverage = section.tables(figures)
    assert [row[0] for row in by_forecast.rows] == list(figures["mean_mase"])
    assert coverage.rows[1] == ("which states", "80 %")
    assert {other for other, _, _ in verdicts(section, figures)} == set(figures["champion_over"])


def test_sizes_and_times_are_shown() -> None:
    control = {
        "step_ms_p50": {"100": 1.5},
        "step_ms_p99": {"100": 2.5},
        "growth_exponent": 0.9,
        "sim_hour_s": 12.0,
        "sim_hour_s_range": [11.0, 13.0],
        "plan_s": {"dataflow": 0.5},
        "plan_accepted": True,
    }
    steps, _, plans = BY_BENCH["control"].tables(control)
    assert (steps.rows, plans.rows) == ((("100", "1.5", "2.5"),), (("dataflow", "0.5"),))
    assert BY_BENCH["control"].reached(control) is True
    service = dict.fromkeys(("queries", "records", "list_s", "query_s", "charts_s", "live_s"), 1)
    slow = {**service, "first_view_s": 1.5, "cycle_ratio": 1.0}
    assert BY_BENCH["service"].reached(slow) is False
    assert ("first answer of a new server, s", "1.5") in next(iter(BY_BENCH["service"].tables(slow))).rows
    size = {"first": 1.0, "last": 2.0, "growth_a_day": 0.1, "interval": [-0.1, 0.3], "within_noise": True}
    days = {"days": 30, "queries": 20, "worst_cycle_s": 1.2}
    _, growth = BY_BENCH["endurance"].tables(
        days | dict.fromkeys(("resident_mb", "server_mb", "store_mb", "blocks"), size)
    )
    assert growth.rows[0] == ("resident_mb", "1", "2", "0.1", "-0.1 to 0.3", "yes")
