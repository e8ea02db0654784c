"""Loads to forecast from: a run in the log, an event log, a scenario."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homeostat.core.record_json import JSON
from homeostat.core.records import BATCH, Record
from homeostat.spark.outside.logged_run import record
from homeostat.store.sqlite import SqliteStore
from support.paths import RECORDED as LOGS

Homeostat = Callable[..., Any]


RECORDED = LOGS / "wordcount.jsonl"


START = datetime(2024, 1, 1, tzinfo=UTC)


def two_sources(number: int) -> Record:
    """Clicks go up and down within the hour, orders wander."""
    plain = batch(number)
    clicks = 1000 + 500 * math.sin(number / 360 * 2 * math.pi)
    orders = 300 * math.exp(WANDERED[number])
    apart: JSON = {"clicks": clicks, "orders": orders}
    return replace(plain, body={"arrival_per_s": clicks + orders, "span_s": 10.0, "arrivals_per_s": apart})


@pytest.mark.slow
def test_of_several_sources_each_has_its_champion_and_one_can_be_chosen(homeostat: Homeostat) -> None:
    store = SqliteStore("log.sqlite")
    store.append("count", [batch(number) for number in range(100)])
    store.append("count", [two_sources(number) for number in range(100, 1600)])
    store.close()
    call = ("forecast", "--store", "log.sqlite", "--horizon", "15 min")
    answer = homeostat(*call, "--json").json
    assert answer["source"] == "count in log.sqlite"
    clicks, orders = answer["sources"]
    assert (clicks["name"], clicks["usable"], orders["name"], orders["usable"]) == ("clicks", True, "orders", False)
    assert clicks["mase"] > 0
    text = homeostat(*call).out
    (line,) = [line for line in text.splitlines() if line.startswith("clicks ")]
    assert line.split()[:2] == ["clicks", clicks["champion"].split()[0]]
    assert f"{clicks['mase']:.2f}" in line
    only = homeostat(*call, "--of", "clicks", "--json").json
    assert (only["source"], only["sources"]) == ("clicks of count in log.sqlite", [])
    assert (only["champion"], only["mase"]) == (clicks["champion"], pytest.approx(clicks["mase"]))
    for line in only["forecast"]:
        number = 1600 + line["ahead_s"] / 10
        assert line["expected"] == pytest.approx(1000 + 500 * math.sin(number / 360 * 2 * math.pi), rel=0.1)
    refused = homeostat(*call, "--of", "click")
    assert (refused.code, "has no source 'click' (did you mean 'clicks'?)" in refused.err) == (2, True)


def test_the_sources_of_a_scenario_share_its_load(homeostat: Homeostat, scenario: Path) -> None:
    text = scenario.read_text()
    second = '[[component]]\nname = "more"\nkind = "source"\nrate = "1 k/s"\n\n[[component]]\nname = "count"'
    scenario.write_text(text.replace('[[component]]\nname = "count"', second).replace('["lines"]', '["lines", "more"]'))
    call = ("forecast", scenario, "--horizon", "1 min", "--at", "4 min", "--json")
    whole, half = homeostat(*call).json, homeostat(*call, "--of", "more").json
    assert [each["name"] for each in whole["sources"]] == ["lines", "more"]
    assert half["forecast"][0]["expected"] == pytest.approx(whole["forecast"][0]["expected"] / 2)


def test_the_load_of_an_application_is_forecast_from_sparks_event_log(homeostat: Homeostat) -> None:
    answer = homeostat("forecast", "--event-log", RECORDED, "--horizon", "10 s", "--json").json
    assert answer["source"] == f"twin in {RECORDED}"
    assert answer["made_at_s"] == pytest.approx(answer["history_s"] + record(RECORDED).batches[0].started_s, abs=20.0)
    assert answer["forecast"][0]["expected"] == pytest.approx(250.0, rel=0.2)
    refused = homeostat("forecast", "--event-log", RECORDED, "--store", "log.sqlite")
    assert (refused.code, "are both given" in refused.err) == (2, True)


def test_the_source_of_a_recorded_query_is_the_component_that_reads_it() -> None:
    recorded = record(RECORDED)
    assert recorded.sources == (recorded.components[0].name,)
    assert len(recorded.batches[-1].sources) == 1


def test_a_log_without_batches_is_refused(homeostat: Homeostat) -> None:
    store = SqliteStore("log.sqlite")
    store.append("count", [Record("g-1", "engine", START.timestamp(), "the engine runs")])
    store.close()
    result = homeostat("forecast", "--store", "log.sqlite")
    assert (result.code, "has too few batches for a forecast" in result.err) == (2, True)


def test_the_load_of_a_scenario_is_forecast(homeostat: Homeostat, scenario: Path) -> None:
    result = homeostat("forecast", scenario, "--horizon", "1 min", "--at", "4 min")
    assert result.code == 0
    assert "small: the next 1 min from 4 min" in result.out
    assert "not usable" in result.out


def test_without_a_source_and_a_log_it_says_what_to_name(homeostat: Homeostat) -> None:
    result = homeostat("forecast")
    assert (result.code, "no log found" in result.err) == (2, True)
    assert homeostat("forecast", "nothing.csv").code == 2


def batch(number: int) -> Record:
    """One every ten seconds; the load goes up and down within the hour. Of some the arrival is unknown."""
    at_s = START.timestamp() + 10.0 * number
    arrival = 1000 + 500 * math.sin(number / 360 * 2 * math.pi) if number % 9 else None
    return Record(f"b-{number}", BATCH, at_s, "a batch", body={"arrival_per_s": arrival, "span_s": 10.0})


@pytest.mark.slow
def test_the_load_of_an_application_is_forecast_from_its_log(homeostat: Homeostat) -> None:
    store = SqliteStore("log.sqlite")
    store.append("count", [batch(number) for number in range(1500)])
    store.close()
    answer = homeostat("forecast", "--store", "log.sqlite", "--horizon", "15 min", "--json").json
    assert answer["source"] == "count in log.sqlite"
    assert answer["usable"] is True
    assert answer["season_s"] == pytest.approx(3600, rel=0.05)
    for line in answer["forecast"]:
        number = 1500 + line["ahead_s"] / 10
        assert line["expected"] == pytest.approx(1000 + 500 * math.sin(number / 360 * 2 * math.pi), rel=0.1)
    refused = homeostat("forecast", "--store", "log.sqlite", "--run", "other")
    assert (refused.code, "the log has no run 'other'" in refused.err) == (2, True)


WANDERED = np.cumsum(np.random.default_rng(1).normal(0.0, 0.01, 1600)).tolist()
