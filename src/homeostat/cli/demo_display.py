"""Shows a demonstration on Spark: a live view on a terminal, lines elsewhere, and a summary at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING

from homeostat.cli.live_display import (
    FEWEST_EVENTS,
    MOST_EVENTS,
    SHOWN_KINDS,
    WIDEST_LABEL,
    ended_diagnosis,
    event_line,
    event_lines,
    sparkline,
)
from homeostat.cli.output import clock, console, heading, print_table
from homeostat.strict.units import format_count

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.text import Text

    from homeostat.core.records import Record
    from homeostat.lab.demonstration import Performance, Variant
    from homeostat.log_views.timeline import Point, Timeline

REDRAW_S = 1.0
REPORT_EVERY_S = 15.0
ALSO_SHOWN = ("receipt", "change")
OBJECTIVE = "keep up with the load, with no idle executors"
BEHIND = "more rows wait than arrive in two triggers"
COMPARISON = ("", "behind", "largest backlog", "executor-seconds", "rows done", "lost or counted twice", "at end")


def is_shown(record: Record) -> bool:
    """Missing metrics and ended diagnoses are in the log, but not on the screen."""
    from homeostat.core.records import SymptomContent

    symptom = record.content_as(SymptomContent)
    if (symptom is not None and symptom.symptom == "unknown") or record.text.startswith("unknown"):
        return False
    return record.kind in (*SHOWN_KINDS, *ALSO_SHOWN) and not ended_diagnosis(record)


class Silent:
    """For `--json`: progress goes to stderr, and nothing else is printed."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell

    def look(self, performance: Performance) -> None: ...


class Lines:
    """Prints a line for each event, and the state every few seconds."""

    def __init__(self, write: Callable[[str], None], tell: Callable[[str], None]) -> None:
        self._write, self.tell = write, tell
        self._events_printed = 0
        self._report_s = 0.0

    def look(self, performance: Performance) -> None:
        for record in performance.events[self._events_printed :]:
            if is_shown(record):
                self._write(event_line(record))
        self._events_printed = len(performance.events)
        elapsed_s = performance.elapsed_s
        if elapsed_s is not None and performance.points and elapsed_s >= self._report_s:
            self._report_s = elapsed_s + REPORT_EVERY_S
            self._write(f"{clock(elapsed_s):>8}  {'now':<15} {state_line(performance.points[-1])}")


class Picture:
    """Redraws the whole view, at most once per second."""

    def __init__(self, variant: Variant, live: Live) -> None:
        self._variant, self._live = variant, live
        self._drawn_s = 0.0
        self._doing = "starting"

    def tell(self, line: str) -> None:
        self._doing = line
        if not self._drawn_s:
            self._live.update(self._starting(), refresh=True)

    def look(self, performance: Performance) -> None:
        now_s = time.monotonic()
        if now_s - self._drawn_s < REDRAW_S:
            return
        self._drawn_s = now_s
        self._live.update(self.draw(performance), refresh=True)

    def draw(self, performance: Performance) -> RenderableType:
        from rich.console import Group
        from rich.panel import Panel

        elapsed_s = performance.elapsed_s
        if elapsed_s is None or not performance.points:
            if not performance.stopping:
                waited_s = time.time() - performance.opened_s
                self._doing = f"starting Spark and the query's first batch … {waited_s:.0f} s (about half a minute)"
            return self._starting()
        width, height = self._live.console.width - 4, self._live.console.height
        room = min(MOST_EVENTS, max(FEWEST_EVENTS, height - 13))
        events = list(filter(is_shown, performance.events))[-room:]
        return Group(
            self._headline(performance, min(elapsed_s, performance.plan.duration_s)),
            Panel(_curves(performance, width), title="rows and executors", title_align="left"),
            Panel(event_lines(events, room), title="what happens, and what Homeostat does", title_align="left"),
        )

    def _starting(self) -> Text:
        from rich.text import Text

        return Text.assemble((f"A word count on Spark, {self._variant.title}", "bold"), f"\n{self._doing}")

    def _headline(self, performance: Performance, elapsed_s: float) -> Text:
        from rich.text import Text

        point = performance.points[-1]
        return Text.assemble(
            (f"A word count on Spark, {self._variant.title}", "bold"),
            f" · objective: {OBJECTIVE}",
            f"\n{clock(elapsed_s)} of at most {clock(performance.plan.duration_s)} · ",
            ("behind", "red") if point.behind else ("keeps up", "green"),
            f" · last batch {point.seconds:.1f} s, trigger {point.trigger_s:g} s",
            " · stopping everything" if performance.stopping else f" · Spark UI {performance.about.get('ui', '-')}",
        )


def state_line(point: Point) -> str:
    return (
        f"{format_count(round(point.rate_per_s))} of {format_count(point.load_per_s)} rows/s, "
        f"backlog {format_count(point.pending_rows)}, batch {point.seconds:.1f} s, {_executors(point.executors)}"
        f"{', behind' if point.behind else ''}"
    )


def print_summary(timeline: Timeline) -> None:
    """What happened, what Homeostat did, and the result."""
    out = console()
    heading(f"\nA word count on Spark, {timeline.title}")
    changes = [(clock(r.change.at_s), r.change.text, _recovery_text(r.healthy_after_s)) for r in timeline.recoveries]
    print_table(("time", "what happened", "healthy again?"), changes, right=("time",))
    out.print()
    if timeline.actions:
        deeds = [
            (clock(d.at_s), d.id, d.text, d.cause, "-" if d.took_s is None else f"{d.took_s:.0f} s", d.verdict or "-")
            for d in timeline.actions
        ]
        columns = ("time", "id", "action", "because", "took", "verdict")
        print_table(columns, deeds, right=("time", "took"), fold=("action",))
        out.print()
    for label, value in _figures(timeline).items():
        out.print(f"{label:<24}{value}", markup=False)


def print_comparison(timelines: Sequence[Timeline]) -> None:
    heading("\nThe same load and the same fault")
    rows = [(timeline.title, *_comparison(timeline)) for timeline in timelines]
    print_table(COMPARISON, rows, right=COMPARISON[1:6], styles=["" if t.healthy else "red" for t in timelines])
    console().print(f"behind: {BEHIND}", style="dim", markup=False)


def ledger_line(timeline: Timeline) -> str:
    if not timeline.differences:
        return f"{timeline.rows:,}, all counted exactly once"
    return f"{timeline.rows:,}, WRONG: {'; '.join(timeline.differences[:3])}"


def _figures(timeline: Timeline) -> dict[str, str]:
    return {
        "behind": f"{timeline.behind_s:.0f} s of {timeline.duration_s:.0f} s ({BEHIND})",
        "largest backlog": f"{format_count(timeline.largest_backlog)} rows",
        "executor-seconds": f"{timeline.executor_seconds:,.0f}",
        "rows": ledger_line(timeline),
        "at the end": "keeps up" if timeline.healthy else "BEHIND",
    }


def _comparison(timeline: Timeline) -> tuple[str, ...]:
    return (
        f"{timeline.behind_s:.0f} s",
        format_count(timeline.largest_backlog),
        f"{timeline.executor_seconds:,.0f}",
        f"{timeline.rows:,}",
        "YES" if timeline.differences else "none",
        "keeps up" if timeline.healthy else "BEHIND",
    )


def _recovery_text(after_s: float | None) -> str:
    if after_s is None:
        return "no"
    return f"after {after_s:.0f} s" if after_s else "never fell behind"


def _executors(count: int) -> str:
    return f"{count} executor{'' if count == 1 else 's'}"


def _curves(performance: Performance, width: int) -> Text:
    """The whole run from left to right. Load and rate share a scale; backlog and executors have their own."""
    from rich.text import Text

    points, plan = performance.points, performance.plan
    cells = max(10, width - WIDEST_LABEL - 14)
    highest = 1.3 * max(rate_per_s for _, rate_per_s in plan.load)
    lines = [
        ("load", [point.load_per_s for point in points], highest, "/s", "bright_black"),
        ("rate", [point.rate_per_s for point in points], highest, "/s", "cyan"),
        ("backlog", [point.pending_rows for point in points], None, "", "red" if points[-1].behind else "yellow"),
        ("executors", [float(point.executors) for point in points], None, "", "blue"),
    ]
    text = Text()
    for label, values, top, unit, colour in lines:
        finite = [(point.at_s, value) for point, value in zip(points, values, strict=True) if isfinite(value)]
        times_s, heights = [at_s for at_s, _ in finite], [value for _, value in finite]
        scale = top or max(heights, default=0.0)
        now = f"{format_count(round(heights[-1]))}{unit}" if heights else "-"
        text.append(f"{label:<{WIDEST_LABEL}} ")
        text.append(sparkline(times_s, heights, plan.duration_s, scale, cells), style=colour)
        text.append(f" {now:>12}\n")
    text.right_crop(1)
    return text
