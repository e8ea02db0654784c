"""`homeostat forecast` and `homeostat bench forecast`, as a user calls them."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

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
    result = homeostat("forecast", trace, "--horizon", "1 d")
    assert result.code == 0
    assert f"{trace}: the next 1 d from 2024-01-11 00:00:00" in result.out
    assert "usable: its error is" in result.out
    assert "80% interval" in result.out
    assert "2024-01-12 00:00:00" in result.out
    assert "actual" not in result.out.partition("\n\n")[2]


def test_from_a_moment_in_the_past_it_is_shown_beside_what_came(homeostat: Homeostat, trace: Path) -> None:
    for at in ("2024-01-09T06:00", "8.25 d"):
        answer = homeostat("forecast", trace, "--horizon", "6 h", "--at", at, "--interval", "90 %", "--json").json
        assert answer["usable"] is True
        assert answer["nominal_coverage"] == pytest.approx(0.9)
        assert answer["made_at_s"] == datetime(2024, 1, 9, 6, tzinfo=UTC).timestamp()
        assert len(answer["forecast"]) == 12
        for line in answer["forecast"]:
            assert line["low"] <= line["expected"] <= line["high"]
            assert line["expected"] == pytest.approx(line["came"], rel=0.2)
        assert {"name", "mase", "error_per_s"} == set(answer["candidates"][0])
        assert answer["candidates"][0]["mase"] == answer["mase"]


def test_values_may_be_rates_already(homeostat: Homeostat, trace: Path) -> None:
    count, rate = (
        homeostat("forecast", trace, "--values", kind, "--json").json["forecast"][0]["expected"]
        for kind in ("count", "rate")
    )
    assert rate == pytest.approx(1800 * count)


def test_too_short_a_history_is_no_error(homeostat: Homeostat, trace: Path) -> None:
    result = homeostat("forecast", trace, "--horizon", "7 d")
    assert result.code == 0
    assert " of history, but there is only 10 d" in result.out


@pytest.mark.slow
def test_a_picture_is_drawn(homeostat: Homeostat, trace: Path) -> None:
    result = homeostat("forecast", trace, "--at", "9 d", "--picture", "out/load.svg")
    assert result.code == 0
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
    answer = homeostat("forecast", trace, "--with", "own_forecaster_here:Zero", "--json").json
    assert "zero" in {candidate["name"] for candidate in answer["candidates"]}
    refused = homeostat("forecast", trace, "--with", "own_forecaster_here:np")
    assert "own_forecaster_here:np: the plug-in has no method 'ahead', which all forecasters need" in refused.err


@pytest.mark.slow
def test_a_forecaster_of_ones_own_takes_part_in_the_bench_and_by_the_configuration(
    homeostat: Homeostat, trace: Path
) -> None:
    Path("own_forecasters.py").write_text(
        OWN
        + "\nclass Fails(Zero):\n    name = 'fails'\n\n    def ahead(self, history, steps):\n        raise OSError\n"
    )
    call = ("bench", "forecast", "--trace", trace, "--origins", "4", "--horizon", "1 h", "--json")
    answer = homeostat(*call, "--with", "own_forecasters:Zero", "--with", "own_forecasters:Fails").json
    assert answer["champion_over"]["zero"] < 1
    assert answer["mean_mase"]["fails"] is None
    Path("homeostat.toml").write_text('[plugins]\nforecasters = ["own_forecasters:Zero"]\n')
    answer = homeostat("forecast", trace, "--json").json
    assert "zero" in {candidate["name"] for candidate in answer["candidates"]}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--horizon", "soon"), "--horizon: must be a duration"),
        (("--horizon", "0 s"), "--horizon: must be above 0"),
        (("--interval", "100 %"), "--interval: must lie between 0 and 1"),
        (("--at", "2030-01-01"), "--at: 2030-01-01 is outside the recorded load"),
        (("--at", "yesterday"), "--at: must be a duration"),
        (("--values", "bytes"), "--values: unknown kind of values 'bytes'"),
        (("--store", "log.sqlite"), "--store: a log and another source of the load are both given"),
    ],
)
def test_what_cannot_be_forecast_is_refused(
    homeostat: Homeostat, trace: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    result = homeostat("forecast", trace, *arguments)
    assert result.code == 2
    assert complaint in result.err
    assert result.out == ""


@pytest.mark.slow
def test_the_bench_compares_with_all_that_is_simpler(homeostat: Homeostat, trace: Path) -> None:
    call = ("bench", "forecast", "--trace", trace, "--origins", "4", "--horizon", "1 h")
    answer = homeostat(*call, "--horizon", "6 h", "--json").json
    assert list(answer["traces"][str(trace)]["horizons"]) == ["1 h", "6 h"]
    assert answer["champion_over"]["last value"] < 1
    result = homeostat(*call)
    assert "champion ÷ Holt-Winters" in result.out
    assert "load.csv" in result.out
    assert "forecasts at 4 moments" in result.err
    assert homeostat("bench", "forecast", "--trace", trace, "--horizon", "far").code == 2


def test_statsforecast_takes_part_where_it_is_installed(homeostat: Homeostat, trace: Path) -> None:
    result = homeostat("forecast", trace, "--with", "statsforecast", "--json")
    if importlib.util.find_spec("statsforecast") is None:
        assert result.code == 2
        assert "statsforecast is not installed (pip install 'homeostat[forecast]')" in result.err
    else:
        assert "statsforecast MSTL" in {candidate["name"] for candidate in result.json["candidates"]}
