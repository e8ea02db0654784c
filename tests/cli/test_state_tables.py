"""How the state of a checkpoint is printed."""

from __future__ import annotations

import doctest

import pytest

from homeostat.checkpoint.state_reader import Rows
from homeostat.cli import state_tables
from homeostat.cli.state_tables import print_rows


def test_the_examples_in_the_docstrings_hold() -> None:
    results = doctest.testmod(state_tables)
    assert (results.attempted > 0, results.failed) == (True, 0)


def test_structs_become_columns_and_hidden_rows_are_mentioned(capsys: pytest.CaptureFixture[str]) -> None:
    rows = ({"key": {"word": "a"}, "value": {"count": 3}}, {"key": {"word": "b"}, "value": None})
    print_rows(Rows(batch=7, columns=("key", "value"), rows=rows, more=True))
    printed = capsys.readouterr()
    assert [line.split() for line in printed.out.splitlines()] == [
        ["key.word", "value.count", "value"],
        ["a", "3"],
        ["b", "null"],
    ]
    assert printed.err == "2 rows from the state of batch 7; more rows exist, raise --limit to see them\n"
