"""The rows of a demonstration from the experiment source: its load, and the rows that the query has read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from homeostat.lab.demonstration_feed import PROFILE, ExperimentFeed, checkpoint_of, factors, ledger_of
from homeostat.lab.source_control import ControlFile

STARTED_S = 990.0


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The query has planned batches until 3 and committed those until 2."""
    (tmp_path / "control").mkdir()
    for name in ("offsets", "commits"):
        (checkpoint_of(tmp_path) / name).mkdir(parents=True)
    for batch_id in range(4):
        offset = json.dumps({"row": 100 * batch_id, "started_s": STARTED_S})
        (checkpoint_of(tmp_path) / "offsets" / str(batch_id)).write_text(f"v1\n{{}}\n{offset}")
    for batch_id in range(3):
        (checkpoint_of(tmp_path) / "commits" / str(batch_id)).write_text("v1\n{}")
    return tmp_path


def test_a_load_becomes_factors_that_count_from_the_start_of_the_rows() -> None:
    load = factors(((0.0, 850.0), (25.0, 1700.0)), 30.0)
    assert load == ((30.0, 8.5), (55.0, 17.0))
    assert PROFILE.rows_until(56.0, load) == 30 * 100 + 25 * 850 + 1700


def test_the_source_follows_the_load_from_its_own_start(directory: Path) -> None:
    feed = ExperimentFeed(directory)
    feed.follow(((0.0, 850.0), (25.0, 1700.0)), 1000.0)
    feed.follow(((0.0, 850.0), (20.0, 1700.0)), 1000.0)
    control = ControlFile(str(directory / "control" / "wordcount.json"))
    assert control.read().load == ((10.0, 8.5), (30.0, 17.0))


def test_the_rows_of_the_last_batch_that_is_committed_or_in_the_ledger_count(directory: Path) -> None:
    feed = ExperimentFeed(directory)
    assert feed.expected_counts() == PROFILE.expected_counts(200)
    ledger_of(directory).mkdir()
    (ledger_of(directory) / "3.parquet").touch()
    assert feed.expected_counts() == PROFILE.expected_counts(300)


def test_before_the_first_batch_no_row_counts(tmp_path: Path) -> None:
    assert ExperimentFeed(tmp_path).expected_counts() == {}
