from __future__ import annotations

import json

import pytest

from homeostat.cli.main import run
from homeostat.lab.bench import endurance as bench

RESULT: dict[str, object] = {
    name: {"first": 10.0, "last": 11.0, "growth_a_day": 0.01, "interval": [-0.1, 0.1], "within_noise": True}
    for name in ("resident_mb", "server_mb", "store_mb", "blocks")
} | {"worst_cycle_s": 0.5, "threads": [2, 3], "files": [9, 10]}


def test_the_figures_are_printed_as_a_table_and_as_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments: list[dict[str, object]] = []

    def measure(**options: object) -> dict[str, object]:
        arguments.append(options)
        return RESULT

    monkeypatch.setattr(bench, "measure", measure)
    assert run(["bench", "endurance", "--days", "2", "--queries", "3"]) == 0
    out = capsys.readouterr().out
    assert "memory of the manager, MB" in out
    assert "blocks of memory in the manager" in out
    assert "-0.100 to +0.100" in out
    assert "9 to 10" in out
    assert run(["bench", "endurance", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["threads"] == [2, 3]
    assert [(each["days"], each["queries"]) for each in arguments] == [(2.0, 3), (30.0, 20)]
