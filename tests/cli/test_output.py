"""Data goes to stdout, messages go to stderr."""

from __future__ import annotations

import json
import math

import pytest

from homeostat.cli.output import print_json, print_table, say, visible


def test_json_has_no_nan_and_no_tuples(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"unknown": math.nan, "endless": math.inf, "pair": (1, 2.5), 3: "key"})
    assert json.loads(capsys.readouterr().out) == {"unknown": None, "endless": None, "pair": [1, 2.5], "3": "key"}


def test_off_a_terminal_a_table_is_aligned_and_never_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "rows", "what"), [("a", "1,000", "x" * 300), ("longer", "2", "")], right=("rows",))
    head, first, second = capsys.readouterr().out.splitlines()
    assert head == "name     rows  what"
    assert first == f"a       1,000  {'x' * 300}"
    assert second == "longer      2"


def test_messages_do_not_mix_with_data(capsys: pytest.CaptureFixture[str]) -> None:
    say("a message")
    assert capsys.readouterr() == ("", "a message\n")


def test_control_characters_are_shown_and_not_carried_out() -> None:
    assert visible("4.0\x1b[31m\x9b\u202e\r\x00") == r"4.0\x1b[31m\x9b\u202e\r\x00"
    assert visible("a\tb\nc · 1\u202f000 ✓") == "a\tb\nc · 1\u202f000 ✓"
