"""`homeostat demo` on Spark: what it refuses, what it draws and tells; and one short real run."""

from __future__ import annotations

import io
import math
import os
import re
import shlex
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from homeostat.cli import pictures
from homeostat.cli.demo_display import Lines, Picture, Silent, print_comparison, print_summary
from homeostat.core.records import Record
from homeostat.lab.demonstration import REGULATED, SPARKS_OWN, UNREGULATED, Performance, Plan, Variant, perform_each
from homeostat.lab.faults import executor_processes
from homeostat.lab.source_control import ControlFile
from homeostat.runtime.launch import LEASE, SUPERVISOR
from homeostat.runtime.lease import Lease
from homeostat.store.sqlite import SqliteStore
from homeostat.views.timeline import Change, Deed, Point, Timeline
from support.paths import ROOT

Homeostat = Callable[..., Any]
PLAN = Plan(load=((0.0, 1000.0), (45.0, 2000.0), (160.0, 600.0)), slow_at_s=105.0, duration_s=210.0)
SHORT = Plan(load=((0.0, 300.0), (20.0, 600.0)), slow_at_s=25.0, duration_s=45.0)
QUIET = Silent(lambda line: None)
DEMO_STATE = re.compile(r"homeostat state \w+ \.homeostat/demo/")


def point(at_s: float, pending: float = 1000.0, executors: int = 2) -> Point:
    return Point(at_s, 2.0, PLAN.load_at(at_s), 0.98 * PLAN.load_at(at_s), pending, executors, 1.5, 2.0)


def performance(home: Path) -> Performance:
    """One that looks as if it had run for a hundred seconds."""
    made = Performance(PLAN, REGULATED, home, QUIET)
    made.began_s = time.time() - 100.0
    made.points = [point(2.0 * number) for number in range(1, 49)]
    made.points += [point(98.0, math.nan), point(100.0, 30_000, 4)]
    made.events = [
        Record("", "change", 45.0, "the load rises: 1,000 → 2,000 rows/s"),
        Record("s-1", "symptom", 47.0, "pressure at scan", "scan", body={"symptom": "pressure"}),
        Record("s-2", "symptom", 47.0, "unknown (detector idle)", body={"symptom": "unknown"}),
        Record("d-1", "diagnosis", 47.0, "scan is under-provisioned (probability 0.90)", "scan"),
        Record("a-1", "action", 47.0, "scale-up: executors.app = 4", "scan"),
        Record("e-1", "diagnosis", 60.0, "under-provisioned is over after 13 s", "scan", body={"over": True}),
    ]
    return made


def timeline(title: str = "regulated by Homeostat", *, differences: tuple[str, ...] = ()) -> Timeline:
    points = tuple(point(2.0 * n, 30_000 if 46 <= 2 * n < 60 else 1000, 2 + (2 * n > 50)) for n in range(1, 106))
    deeds = (
        Deed("a-1", 47.0, "scale-up", "scale-up: executors.app = 4", "under-provisioned", 9.0, "helped"),
        Deed("a-2", 190.0, "scale-down", "scale-down: executors.app = 1", "over-provisioned", None, ""),
    )
    changes = (*PLAN.load_changes[:1], Change(105.0, "executor 0 turns 4 times slower"), *PLAN.load_changes[1:])
    return Timeline("demo", title, 210.0, PLAN.load, points, changes, deeds, 290_000, differences)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--engine", "flink"), "unknown engine 'flink'"),
        (("--scenario", "E1"), "only for --engine sim"),
        (("--speed", "2"), "only for --engine sim"),
        (("--engine", "sim", "--compare"), "only for --engine spark"),
        (("--picture", "demo.gif"), "use .png or .svg"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_starts(
    homeostat: Homeostat, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    ran = homeostat("demo", *arguments)
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert words in ran.err
    assert not (tmp_path / ".homeostat").exists()


def test_the_plan_knows_its_load_and_says_what_changes() -> None:
    assert [PLAN.load_at(at_s) for at_s in (-1.0, 0.0, 44.9, 45.0, 1e6)] == [1000, 1000, 1000, 2000, 600]
    assert [change.text for change in PLAN.load_changes] == [
        "the load rises: 1,000 → 2,000 rows/s",
        "the load falls: 2,000 → 600 rows/s",
    ]


def deed(kind: str, at_s: float, verdict: str = "helped") -> Deed:
    return Deed("a-1", at_s, kind, kind, "cause", 9.0, verdict)


def times(plan: Plan) -> tuple[float, ...]:
    return (*(at_s for at_s, _ in plan.load), plan.slow_at_s, plan.duration_s)


@pytest.mark.parametrize(
    ("deeds", "now_s", "then"),
    [
        ((), 60.0, times(PLAN)),
        ((deed("scale-up", 10.0),), 12.0, times(PLAN)),
        ((deed("scale-up", 47.0, ""),), 60.0, times(PLAN)),
        ((deed("scale-up", 44.0),), 60.0, times(PLAN)),
        ((deed("replace", 50.0),), 60.0, times(PLAN)),
        ((deed("scale-up", 47.0),), 60.0, (0.0, 45.0, 160.0, 60.0, 210.0)),
        ((deed("scale-up", 47.0, "confounded"),), 60.0, (0.0, 45.0, 160.0, 60.0, 210.0)),
        ((deed("scale-up", 47.0),), 110.0, times(PLAN)),
        ((deed("replace", 106.0),), 120.0, (0.0, 45.0, 120.0, 105.0, 210.0)),
        ((deed("replace", 106.0),), 170.0, times(PLAN)),
        ((deed("scale-down", 165.0),), 180.0, (0.0, 45.0, 160.0, 105.0, 180.0)),
        ((deed("scale-down", 165.0),), 211.0, times(PLAN)),
    ],
)
def test_what_is_next_comes_as_soon_as_the_answer_to_what_came_before_has_been_judged(
    deeds: tuple[Deed, ...], now_s: float, then: tuple[float, ...]
) -> None:
    assert times(PLAN.hastened(deeds, now_s)) == then


def test_a_plan_that_was_hastened_goes_on_from_there() -> None:
    risen = deed("scale-up", 47.0)
    plan = PLAN.hastened((risen,), 60.0)
    assert plan.hastened((risen,), 61.0) == plan
    replaced = (risen, deed("replace", 70.0))
    assert times(plan.hastened(replaced, 90.0)) == (0.0, 45.0, 90.0, 60.0, 210.0)


def test_the_source_is_told_of_a_load_that_falls_early(tmp_path: Path) -> None:
    shown = Performance(replace(PLAN, slow_at_s=200.0), REGULATED, tmp_path, QUIET)
    offsets = shown.directory / "checkpoints" / "wordcount" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "7").write_text('v1\n{}\n{"started_s": 990.0, "row": 100}')
    (shown.directory / "control").mkdir()
    control = ControlFile(str(shown.directory / "control" / "wordcount.json"))
    with closing(SqliteStore(shown.log)) as log:
        log.append("demo/wordcount", [Record("a-1", "action", 1050.0, "scale-up", body={"kind": "scale-up"})])
        shown.go_on(119.0, 1000.0)
        assert control.read().load == ()
        verdict = {"action": "a-1", "verdict": "helped"}
        log.append("demo/wordcount", [Record("u-1", "outcome", 1120.0, "a-1 helped", body=verdict)])
        shown.go_on(120.0, 1000.0)
    assert [tuple(step) for step in control.read().load] == [(10.0, 10.0), (55.0, 20.0), (130.0, 6.0)]
    assert shown.events[-1].text == "the load falls: 2,000 → 600 rows/s"


def test_in_a_comparison_the_others_get_the_load_and_the_fault_when_the_first_did() -> None:
    variants = (REGULATED, UNREGULATED, SPARKS_OWN)
    performed: list[tuple[Variant, float]] = []

    def perform(plan: Plan, variant: Variant) -> tuple[Timeline, Plan]:
        performed.append((variant, plan.slow_at_s))
        return timeline(variant.title), replace(plan, slow_at_s=61.0) if variant == REGULATED else plan

    timelines = perform_each(variants, PLAN, perform)
    assert performed == [(REGULATED, PLAN.slow_at_s), (UNREGULATED, 61.0), (SPARKS_OWN, 61.0)]
    assert [each.title for each in timelines] == [variant.title for variant in variants]


def test_in_lines_each_event_is_told_once(tmp_path: Path) -> None:
    lines: list[str] = []
    viewer, shown = Lines(lines.append, lambda line: None), performance(tmp_path)
    viewer.look(shown)
    viewer.look(shown)
    kinds = [line.split()[1] for line in lines]
    assert kinds == ["change", "symptom", "diagnosis", "action", "now"]
    assert "1.96k of 2k rows/s, backlog 30k, batch 1.5 s, 4 executors, behind" in lines[-1]


def test_on_a_terminal_everything_fits_and_is_there(tmp_path: Path) -> None:
    out = Console(file=io.StringIO(), width=110, height=30, force_terminal=True, color_system=None)
    viewer = Picture(REGULATED, Live(console=out, auto_refresh=False))
    viewer.tell("starting a cluster of 3 workers")
    with out.capture() as drawn:
        out.print(viewer.draw(performance(tmp_path)))
    text = drawn.get()
    assert len(text.splitlines()) <= 30
    assert "objective: the rate follows the load" in text
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
    for words in ("the load rises", "after 15 s", "never fell behind", "helped", "nothing lost, nothing doubled"):
        assert words in out
    print_summary(timeline(differences=("'word-1': counted 3 times instead of 2",)))
    assert "WRONG: 'word-1': counted 3 times" in capsys.readouterr().out


def test_three_runs_stand_beside_each_other(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    runs = [timeline(), timeline("not regulated"), timeline("Spark's dynamic allocation")]
    print_comparison(runs)
    out = capsys.readouterr().out
    assert [line.split("  ")[0] for line in out.splitlines()[3:6]] == [run.title for run in runs]
    for count in (1, 3):
        for suffix in (".svg", ".png"):
            pictures.timelines(runs[:count], tmp_path / f"{count}{suffix}", "A word count")
            assert (tmp_path / f"{count}{suffix}").stat().st_size > 10_000


@pytest.mark.parametrize("lease", [SUPERVISOR, LEASE])
def test_a_demonstration_that_starts_or_runs_is_left_alone(homeostat: Homeostat, tmp_path: Path, lease: str) -> None:
    directory = tmp_path / ".homeostat" / REGULATED.name
    kept = directory / "ledger" / "kept"
    kept.parent.mkdir(parents=True)
    kept.write_text("of the other")
    with Lease(directory / lease):
        ran = homeostat("demo", "--json")
    assert (ran.code, ran.out) == (1, "")
    (line,) = ran.err.splitlines()
    assert line == (
        f"homeostat: {directory}: another manager already controls this application (process {os.getpid()}) "
        "(stop it first, or choose another directory)"
    )
    assert kept.read_text() == "of the other"


def test_what_an_earlier_demonstration_left_is_removed(tmp_path: Path) -> None:
    directory = tmp_path / REGULATED.name
    (directory / "ledger").mkdir(parents=True)
    (directory / "ledger" / "0.parquet").touch()
    (directory / "log.sqlite").touch()
    Performance(PLAN, REGULATED, tmp_path, QUIET).prepare()
    assert {path.name for path in directory.iterdir()} == {LEASE, "wordcount.py", "homeostat.toml"}


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("variant", [REGULATED, UNREGULATED, SPARKS_OWN], ids=lambda variant: variant.name)
def test_a_short_one_on_real_spark_loses_nothing_and_leaves_nothing(tmp_path: Path, variant: Variant) -> None:
    shown = Performance(SHORT, variant, tmp_path, QUIET)
    result = shown.run()
    assert result.differences == ()
    assert result.rows > 0
    assert result.points
    assert [change.at_s for change in result.changes[:1]] == [20.0]
    assert "turns 4 times slower" in result.changes[1].text
    assert executor_processes(shown.about["application"]) == {}


@pytest.mark.spark
@pytest.mark.soak
def test_the_state_that_it_leaves_is_looked_into_and_moved_as_the_readme_says(
    homeostat: Homeostat, tmp_path: Path
) -> None:
    Performance(SHORT, REGULATED, tmp_path / ".homeostat", QUIET).run()
    readme = (ROOT / "README.md").read_text()
    commands = [shlex.split(line, comments=True)[1:] for line in readme.splitlines() if DEMO_STATE.match(line)]
    assert [command[1] for command in commands] == ["ls", "query", "rescale", "rescale"]
    for command in commands:
        ran = homeostat(*command)
        assert ran.code == 0, ran.err
    assert "6 partitions" in homeostat("state", "ls", *commands[0][2:]).out
