"""`homeostat forecast` and `homeostat bench forecast`, as a user calls them."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from homeostat.core.record_json import JSON
from homeostat.core.records import BATCH, Record
from homeostat.spark.outside.recorder import record
from homeostat.store.sqlite import SqliteStore
from support.paths import RECORDED as LOGS

Homeostat = Callable[..., Any]
RECORDED = LOGS / "wordcount.jsonl"
START = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten days of half hours; high by day, low by night, and a little uneven."""
    path = tmp_path_factory.mktemp("traces") / "load.csv"
    rows = [
        f"{START + timedelta(minutes=30 * number):%Y-%m-%d %H:%M:%S},"
        f"{1800 * (1000 + 600 * math.sin(number / 48 * 2 * math.pi) + 50 * math.sin(number * number)):.0f}"
        for number in range(480)
    ]
    path.write_text("\n".join(["timestamp,value", *rows]))
    return path


def test_a_trace_is_forecast_from_its_end(homeostat: Homeostat, trace: Path) -> None:
    ran = homeostat("forecast", trace, "--horizon", "1 d")
    assert ran.code == 0
    assert f"{trace}: the next 1 d from 2024-01-11 00:00:00" in ran.out
    assert "usable: its error is" in ran.out
    assert "80% interval" in ran.out
    assert "2024-01-12 00:00:00" in ran.out
    assert "actual" not in ran.out.partition("\n\n")[2]


def test_from_a_moment_in_the_past_it_is_shown_beside_what_came(homeostat: Homeostat, trace: Path) -> None:
    for at in ("2024-01-09T06:00", "8.25 d"):
        told = homeostat("forecast", trace, "--horizon", "6 h", "--at", at, "--interval", "90 %", "--json").json
        assert told["usable"] is True
        assert told["nominal_coverage"] == pytest.approx(0.9)
        assert told["made_at_s"] == datetime(2024, 1, 9, 6, tzinfo=UTC).timestamp()
        assert len(told["forecast"]) == 12
        for line in told["forecast"]:
            assert line["low"] <= line["expected"] <= line["high"]
            assert line["expected"] == pytest.approx(line["came"], rel=0.2)
        assert {"name", "mase", "error_per_s"} == set(told["candidates"][0])
        assert told["candidates"][0]["mase"] == told["mase"]


def test_values_may_be_rates_already(homeostat: Homeostat, trace: Path) -> None:
    count, rate = (
        homeostat("forecast", trace, "--values", kind, "--json").json["forecast"][0]["expected"]
        for kind in ("count", "rate")
    )
    assert rate == pytest.approx(1800 * count)


def batch(number: int) -> Record:
    """One every ten seconds; the load goes up and down within the hour. Of some the arrival is unknown."""
    at_s = START.timestamp() + 10.0 * number
    arrival = 1000 + 500 * math.sin(number / 360 * 2 * math.pi) if number % 9 else None
    return Record(f"b-{number}", BATCH, at_s, "a batch", body={"arrival_per_s": arrival, "span_s": 10.0})


def test_the_load_of_an_application_is_forecast_from_its_log(homeostat: Homeostat) -> None:
    store = SqliteStore("log.sqlite")
    store.append("count", [batch(number) for number in range(1500)])
    store.close()
    told = homeostat("forecast", "--store", "log.sqlite", "--horizon", "15 min", "--json").json
    assert told["source"] == "count in log.sqlite"
    assert told["usable"] is True
    assert told["season_s"] == pytest.approx(3600, rel=0.05)
    for line in told["forecast"]:
        number = 1500 + line["ahead_s"] / 10
        assert line["expected"] == pytest.approx(1000 + 500 * math.sin(number / 360 * 2 * math.pi), rel=0.1)
    refused = homeostat("forecast", "--store", "log.sqlite", "--run", "other")
    assert (refused.code, "there is no run 'other'" in refused.err) == (2, True)


WANDERED = np.cumsum(np.random.default_rng(1).normal(0.0, 0.01, 1600)).tolist()


def two_sources(number: int) -> Record:
    """Clicks go up and down within the hour, orders wander."""
    plain = batch(number)
    clicks = 1000 + 500 * math.sin(number / 360 * 2 * math.pi)
    orders = 300 * math.exp(WANDERED[number])
    apart: JSON = {"clicks": clicks, "orders": orders}
    return replace(plain, body={"arrival_per_s": clicks + orders, "span_s": 10.0, "arrivals_per_s": apart})


def test_of_several_sources_each_has_its_champion_and_one_can_be_chosen(homeostat: Homeostat) -> None:
    store = SqliteStore("log.sqlite")
    store.append("count", [batch(number) for number in range(100)])
    store.append("count", [two_sources(number) for number in range(100, 1600)])
    store.close()
    call = ("forecast", "--store", "log.sqlite", "--horizon", "15 min")
    told = homeostat(*call, "--json").json
    assert told["source"] == "count in log.sqlite"
    clicks, orders = told["sources"]
    assert (clicks["name"], clicks["usable"], orders["name"], orders["usable"]) == ("clicks", True, "orders", False)
    assert clicks["mase"] > 0
    shown = homeostat(*call).out
    (line,) = [line for line in shown.splitlines() if line.startswith("clicks ")]
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
    told = homeostat("forecast", "--event-log", RECORDED, "--horizon", "10 s", "--json").json
    assert told["source"] == f"twin in {RECORDED}"
    assert told["made_at_s"] == pytest.approx(told["history_s"] + record(RECORDED).batches[0].started_s, abs=20.0)
    assert told["forecast"][0]["expected"] == pytest.approx(250.0, rel=0.2)
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
    ran = homeostat("forecast", "--store", "log.sqlite")
    assert (ran.code, "has too few batches for a forecast" in ran.err) == (2, True)


def test_the_load_of_a_scenario_is_forecast(homeostat: Homeostat, scenario: Path) -> None:
    ran = homeostat("forecast", scenario, "--horizon", "1 min", "--at", "4 min")
    assert ran.code == 0
    assert "small: the next 1 min from 4 min" in ran.out
    assert "not usable" in ran.out


def test_too_short_a_history_is_no_error(homeostat: Homeostat, trace: Path) -> None:
    ran = homeostat("forecast", trace, "--horizon", "7 d")
    assert ran.code == 0
    assert " of history, but there is only 10 d" in ran.out


def test_a_picture_is_drawn(homeostat: Homeostat, trace: Path) -> None:
    ran = homeostat("forecast", trace, "--at", "9 d", "--picture", "out/load.svg")
    assert ran.code == 0
    assert "80% interval" in Path("out/load.svg").read_text()
    assert homeostat("forecast", trace, "--picture", "load.gif").code == 2


OWN = """
import numpy as np

class Zero:
    name = "zero"

    def ahead(self, history, steps):
        return np.zeros(steps)
"""


def test_a_forecaster_of_ones_own_takes_part(homeostat: Homeostat, trace: Path) -> None:
    Path("own_forecaster_here.py").write_text(OWN)
    told = homeostat("forecast", trace, "--with", "own_forecaster_here:Zero", "--json").json
    assert "zero" in {candidate["name"] for candidate in told["candidates"]}
    refused = homeostat("forecast", trace, "--with", "own_forecaster_here:np")
    assert "own_forecaster_here:np: the plug-in has no method 'ahead', which all forecasters need" in refused.err


def test_a_forecaster_of_ones_own_takes_part_in_the_bench_and_by_the_configuration(
    homeostat: Homeostat, trace: Path
) -> None:
    Path("own_forecasters.py").write_text(
        OWN
        + "\nclass Fails(Zero):\n    name = 'fails'\n\n    def ahead(self, history, steps):\n        raise OSError\n"
    )
    call = ("bench", "forecast", "--trace", trace, "--origins", "4", "--horizon", "1 h", "--json")
    told = homeostat(*call, "--with", "own_forecasters:Zero", "--with", "own_forecasters:Fails").json
    assert told["champion_over"]["zero"] < 1
    assert told["mean_mase"]["fails"] is None
    Path("homeostat.toml").write_text('[plugins]\nforecasters = ["own_forecasters:Zero"]\n')
    told = homeostat("forecast", trace, "--json").json
    assert "zero" in {candidate["name"] for candidate in told["candidates"]}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--horizon", "soon"), "--horizon: must be a duration"),
        (("--horizon", "0 s"), "--horizon: must be above 0"),
        (("--interval", "100 %"), "--interval: must lie between 0 and 1"),
        (("--at", "2030-01-01"), "--at: 2030-01-01 is outside the recorded load"),
        (("--at", "yesterday"), "--at: must be a duration"),
        (("--values", "bytes"), "--values: unknown kind of values 'bytes'"),
        (("--store", "log.sqlite"), "--store: a log and another source are both given"),
    ],
)
def test_what_cannot_be_forecast_is_refused(
    homeostat: Homeostat, trace: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    ran = homeostat("forecast", trace, *arguments)
    assert ran.code == 2
    assert complaint in ran.err
    assert ran.out == ""


def test_without_a_source_and_a_log_it_says_what_to_name(homeostat: Homeostat) -> None:
    ran = homeostat("forecast")
    assert (ran.code, "no log found" in ran.err) == (2, True)
    assert homeostat("forecast", "nothing.csv").code == 2


def test_the_bench_compares_with_all_that_is_simpler(homeostat: Homeostat, trace: Path) -> None:
    call = ("bench", "forecast", "--trace", trace, "--origins", "4", "--horizon", "1 h")
    told = homeostat(*call, "--horizon", "6 h", "--json").json
    assert list(told["traces"][str(trace)]["horizons"]) == ["1 h", "6 h"]
    assert told["champion_over"]["last value"] < 1
    shown = homeostat(*call)
    assert "champion ÷ Holt-Winters" in shown.out
    assert "load.csv" in shown.out
    assert "forecasts at 4 moments" in shown.err
    assert homeostat("bench", "forecast", "--trace", trace, "--horizon", "far").code == 2


def test_statsforecast_takes_part_where_it_is_installed(homeostat: Homeostat, trace: Path) -> None:
    ran = homeostat("forecast", trace, "--with", "statsforecast", "--json")
    if importlib.util.find_spec("statsforecast") is None:
        assert ran.code == 2
        assert "statsforecast is not installed (pip install 'homeostat[forecast]')" in ran.err
    else:
        assert "statsforecast MSTL" in {candidate["name"] for candidate in ran.json["candidates"]}
