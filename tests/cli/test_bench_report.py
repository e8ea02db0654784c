"""`homeostat bench report` writes the page, and refuses files that are no results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from homeostat.cli.bench import app
from homeostat.lab.bench.result_page import BENCHES

Homeostat = Callable[..., Any]


def test_the_page_of_a_kept_result_is_written(homeostat: Homeostat, tmp_path: Path) -> None:
    results, out = tmp_path / "results", tmp_path / "docs" / "results.md"
    assert homeostat("bench", "synopses", "--keys", "1000", "--keep", str(results)).code == 0
    printed = homeostat("bench", "report", "--results", str(results), "--out", str(out), "--json")
    assert json.loads(printed.out) == {"file": str(out), "results": ["synopses.json"]}
    assert "[synopses.json](../results/synopses.json)" in out.read_text(encoding="utf-8")


def test_a_foreign_file_is_refused_in_one_line(homeostat: Homeostat, tmp_path: Path) -> None:
    (tmp_path / "duel.json").write_text("[]", encoding="utf-8")
    out = tmp_path / "page.md"
    result = homeostat("bench", "report", "--results", str(tmp_path), "--out", str(out))
    assert (result.code, out.exists()) == (2, False)
    assert result.err.count("\n") == 1
    assert "duel.json: this is not a result of a bench" in result.err


def test_every_bench_can_be_kept_and_has_a_section() -> None:
    group: Any = typer.main.get_command(app)
    benches = {name: command for name, command in group.commands.items() if name != "report"}
    assert set(BENCHES) == set(benches)
    assert [name for name, each in benches.items() if "keep" not in {option.name for option in each.params}] == []
