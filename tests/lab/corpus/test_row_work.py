"""The work for each row, and the faults that act there while their switch is on."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from homeostat.lab.corpus import row_work
from homeostat.lab.corpus.row_work import RowWork, rekeyer, worker
from homeostat.lab.corpus.service import Service
from homeostat.lab.corpus.switches import Switches

ROWS = pd.DataFrame({"row": range(1000), "word": [f"word-{number % 10}" for number in range(1000)]})


@pytest.fixture
def switches(tmp_path: Path) -> Switches:
    return Switches(tmp_path)


def test_rows_pass_unchanged(tmp_path: Path) -> None:
    with Service() as service:
        work = worker(RowWork(service.port, wait_ms=0.001, burn_us=0.1, switches=str(tmp_path)))
        (passed,) = work(iter([ROWS]))
    assert passed.equals(ROWS)


def test_a_service_that_goes_away_is_an_error() -> None:
    with Service() as service:
        port = service.port
    with pytest.raises(OSError, match="refused"):
        list(worker(RowWork(port, wait_ms=1.0))(iter([ROWS])))


def test_tasks_fail_while_the_switch_is_on(switches: Switches, tmp_path: Path) -> None:
    work = worker(RowWork(switches=str(tmp_path)))
    switches.turn_on("failing-tasks", 1.0)
    with pytest.raises(OSError, match="injected"):
        list(work(iter([ROWS])))
    switches.turn_off("failing-tasks")
    assert len(list(work(iter([ROWS])))) == 1


def test_rows_of_costly_keys_count_as_many(switches: Switches) -> None:
    costly_rows = sum(word in ("word-0", "word-1", "word-2") for word in ROWS["word"])
    assert row_work.weighted_rows(ROWS, "word", 0.0) == len(ROWS)
    assert row_work.weighted_rows(ROWS, "word", 5.0) == len(ROWS) + 4 * costly_rows


def test_keys_are_the_words_until_a_switch_is_on(switches: Switches, tmp_path: Path) -> None:
    rekey = rekeyer(str(tmp_path), ("key-1", "key-2"))

    def keys() -> pd.Series:
        (rows,) = rekey(iter([ROWS]))
        return rows["key"]

    assert keys().equals(ROWS["word"].rename("key"))
    switches.turn_on("data-skew", 0.4)
    assert (keys() == "hot").mean() == pytest.approx(0.4)
    switches.turn_off("data-skew")
    switches.turn_on("hash-imbalance", 0.6)
    assert keys().isin(["key-1", "key-2"]).mean() == pytest.approx(0.6)


def test_a_list_that_is_searched_grows(switches: Switches, tmp_path: Path) -> None:
    before = row_work.remembered_count()
    switches.turn_on("rising-cost", 3.0)
    list(worker(RowWork(switches=str(tmp_path)))(iter([ROWS.head(10)])))
    assert row_work.remembered_count() == before + 30
