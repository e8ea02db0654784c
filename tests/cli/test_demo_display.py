"""How a demonstration on Spark is shown: lines, a live view, and a summary."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from homeostat.cli import pictures
from homeostat.cli.demo_display import Lines, Picture, print_comparison, print_summary
from homeostat.lab.demonstration import REGULATED, Performance
from support.demonstrations import PLAN, QUIET, performance, timeline


def test_in_lines_each_event_is_reported_once(tmp_path: Path) -> None:
    lines: list[str] = []
    viewer, moment = Lines(lines.append, lambda line: None), performance(tmp_path)
    viewer.look(moment)
    viewer.look(moment)
    kinds = [line.split()[1] for line in lines]
    assert kinds == ["change", "symptom", "diagnosis", "action", "now"]
    assert "1.96k of 2k rows/s, backlog 30k, batch 1.5 s, 4 executors, behind" in lines[-1]


def test_on_a_terminal_everything_fits_and_is_there(tmp_path: Path) -> None:
    out = Console(file=io.StringIO(), width=110, height=30, force_terminal=True, color_system=None)
    viewer = Picture(REGULATED, Live(console=out, auto_refresh=False))
    viewer.tell("starting a local cluster")
    with out.capture() as drawn:
        out.print(viewer.draw(performance(tmp_path)))
    text = drawn.get()
    assert len(text.splitlines()) <= 30
    assert "objective: keep up with the load" in text
    for words in ("load", "rate", "backlog", "executors", "behind", "the load rises", "scale-up: executors.app = 4"):
        assert words in text
    assert "detector idle" not in text
    with out.capture() as drawn:
        out.print(viewer.draw(Performance(PLAN, REGULATED, tmp_path, QUIET)))
    assert "first batch" in drawn.get()


def test_the_summary_tells_what_happened_what_was_done_and_that_no_row_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_summary(timeline())
    out = capsys.readouterr().out
    for words in ("the load rises", "after 15 s", "never fell behind", "helped", "all counted exactly once"):
        assert words in out
    print_summary(timeline(differences=("'word-1': counted 3 times instead of 2",)))
    assert "WRONG: 'word-1': counted 3 times" in capsys.readouterr().out


@pytest.mark.slow
def test_three_runs_stand_beside_each_other(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    runs = [timeline(), timeline("not regulated"), timeline("Spark's dynamic allocation")]
    print_comparison(runs)
    out = capsys.readouterr().out
    assert [line.split("  ")[0] for line in out.splitlines()[3:6]] == [run.title for run in runs]
    for count, name in ((1, "one.svg"), (3, "three.png")):
        pictures.timelines(runs[:count], tmp_path / name, "A word count")
        assert (tmp_path / name).stat().st_size > 10_000
