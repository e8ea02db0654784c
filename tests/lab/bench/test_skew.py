"""The measurement of spread keys: every number is there, hot keys are won back, an even load is left alone."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from homeostat.core.records import ACTION, BATCH, OUTCOME, RECEIPT, Record
from homeostat.lab.bench import skew

pytestmark = pytest.mark.slow


def measured(*exponents: float) -> dict[str, dict[str, Any]]:
    cases: dict[str, dict[str, Any]] = skew.measure(engines=("simulator",), exponents=exponents, tell=lambda _: None)[
        "simulator"
    ]
    return cases


@pytest.fixture(scope="module")
def simulated() -> dict[str, dict[str, Any]]:
    """An even load and a hot key, and three turns of the frequent keys, all short: the command takes every exponent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skew, "TURN_S", 80.0)
        patch.setattr(skew, "SIMULATED_S", 3 * 80.0)
        return measured(0.0)


def test_an_even_load_is_never_touched(simulated: dict[str, dict[str, Any]]) -> None:
    for even in ("zipf 0", "zipf 0, other keys in turn"):
        assert simulated[even]["actions"] == []
        assert simulated[even]["gain"] == pytest.approx(1.0)


def test_one_key_with_half_of_the_load_costs_hardly_anything_once_it_is_spread(
    simulated: dict[str, dict[str, Any]],
) -> None:
    for hot in ("hot 50%", "hot 50%, other keys in turn"):
        assert simulated[hot]["gain"] >= 3.0
        assert simulated[hot]["share_of_ideal"] >= 0.8


def test_a_hot_key_that_is_another_one_now_and_then_is_spread_once(simulated: dict[str, dict[str, Any]]) -> None:
    assert simulated["hot 50%, other keys in turn"]["actions"] == ["adjust-skew"]


@pytest.mark.soak
def test_where_one_key_has_no_more_than_six_tenths_most_of_the_ideal_is_reached() -> None:
    simulated = measured(1.5)
    small = [case["share_of_ideal"] for case in simulated.values() if case["largest_key"] <= 0.6]
    assert len(small) == len(simulated) == 4
    assert min(small) >= 0.8


def record(kind: str, at_s: float, id: str = "", **body: str | float | bool) -> Record:
    return Record(id or f"{kind}-{at_s}", kind, at_s, "", body=body)


def batches(first_s: int, count: int, rows: float = 100.0) -> list[Record]:
    return [record(BATCH, first_s + number, rows=rows, seconds=1.0) for number in range(count)]


def test_a_run_has_settled_when_all_is_judged_and_some_full_batches_came_after_it() -> None:
    acted = [record(ACTION, 5.0, "a-1"), record(RECEIPT, 6.0, action="a-1", applied=True)]
    judged = record(OUTCOME, 20.0, action="a-1", verdict="helped")
    assert not skew.has_settled(batches(0, 4), full=100)
    assert skew.has_settled(batches(0, skew.UNTOUCHED), full=100)
    assert not skew.has_settled(batches(0, skew.UNTOUCHED, rows=50.0), full=100)
    assert not skew.has_settled([*acted[:1], *batches(7, 30)], full=100)
    assert not skew.has_settled([*acted, *batches(7, 30)], full=100)
    assert skew.has_settled([*acted, *batches(7, 30), judged], full=100)
    assert not skew.has_settled([*acted, *batches(7, 2), judged], full=100)


@pytest.mark.spark
@pytest.mark.soak
def test_on_spark_a_hot_key_is_spread_and_every_word_counted_once() -> None:
    command = [sys.executable, "-m", "homeostat.cli.main", "bench", "skew", "--only", "spark", "--exponents", "0"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cases = json.loads(done.stdout)["spark"]
    assert all(case["differences"] == [] for case in cases.values())
    assert cases["zipf 0"]["actions"] == []
    assert cases["hot 50%"]["actions"] == ["adjust-skew"]
    assert cases["hot 50%"]["spread"] == skew.SLOTS
    assert cases["hot 50%"]["gain"] > 1.5
