"""Shows a simulation while it runs: a live view on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from math import ceil, isfinite
from typing import TYPE_CHECKING

from homeostat.cli.output import KIND_STYLES, clock, visible
from homeostat.core.configuration import EXECUTORS
from homeostat.strict.units import format_count

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.text import Text

    from homeostat.core.cycle import Trace
    from homeostat.core.loop_state import State
    from homeostat.core.observation import Observation
    from homeostat.core.records import Record
    from homeostat.sim.scenario.spec import Scenario
    from homeostat.sim.simulation import SimulatedEngine
    from homeostat.sim.truth import TruthSample

SHOWN_KINDS = ("symptom", "diagnosis", "advice", "action", "outcome", "alert", "failure")
SPARKS = "▁▂▃▄▅▆▇█"
REDRAW_S = 0.1
MOST_EVENTS = 16
FEWEST_EVENTS = 3
WIDEST_LABEL = 12
# Flink's labels for backpressure: up to 10 %, up to 50 %, more.
PRESSURE_WORDS = ((0.1, "OK", "green"), (0.5, "LOW", "yellow"), (1.0, "HIGH", "red"))

OnStep = Callable[["Trace", "State", "SimulatedEngine"], None]


def is_shown(record: Record) -> bool:
    """The end of a symptom is shown. The end of its diagnosis is not, because it follows from that."""
    return record.kind in SHOWN_KINDS and not ended_diagnosis(record)


def ended_diagnosis(record: Record) -> bool:
    from homeostat.core.records import DiagnosisContent

    diagnosis = record.content_as(DiagnosisContent)
    return diagnosis is not None and diagnosis.over


def event_line(record: Record) -> str:
    where = f"{record.component}: " if record.component and record.component not in record.text else ""
    return f"{clock(record.at_s):>8}  {record.kind:<9} {record.id:<5} {where}{record.text}"


def plain_events(write: Callable[[str], None]) -> OnStep:
    """Without a terminal: a line for each event, without control codes."""

    def on_step(trace: Trace, state: State, engine: SimulatedEngine) -> None:
        for record in trace.records:
            if is_shown(record):
                write(event_line(record))

    return on_step


class LiveView:
    """Draws each step, at `speed` simulated seconds per second."""

    def __init__(self, scenario: Scenario, policy: str, live: Live, speed: float) -> None:
        self._scenario, self._policy, self._live, self._speed = scenario, policy, live, speed
        self._events: deque[Record] = deque(maxlen=MOST_EVENTS)
        self._started_s = time.monotonic()
        self._drawn_s = 0.0

    def on_step(self, trace: Trace, state: State, engine: SimulatedEngine) -> None:
        self._events.extend(filter(is_shown, trace.records))
        ahead_s = self._started_s + engine.now_s / self._speed - time.monotonic()
        if ahead_s > 0:
            time.sleep(ahead_s)
        now = time.monotonic()
        if now - self._drawn_s >= REDRAW_S or engine.now_s >= self._scenario.duration_s:
            self._drawn_s = now
            self._live.update(self._draw(state, engine), refresh=True)

    def _draw(self, state: State, engine: SimulatedEngine) -> RenderableType:
        from rich.console import Group
        from rich.panel import Panel

        width = self._live.console.width - 4
        latest = state.window[-1] if state.window else None
        return Group(
            self._headline(engine),
            Panel(rates(engine.truth, self._scenario, width), title="rows", title_align="left"),
            Panel(_instances(state, latest, width), title="instances", title_align="left"),
            Panel(
                event_lines(list(self._events), self._room(state)),
                title="what Homeostat detects and does",
                title_align="left",
            ),
        )

    def _headline(self, engine: SimulatedEngine) -> RenderableType:
        from rich.text import Text

        healthy = not engine.truth or engine.truth[-1].healthy
        return Text.assemble(
            (f"{self._scenario.name}: {self._scenario.title}", "bold"),
            f"\npolicy {self._policy} · {clock(engine.now_s)} of {clock(self._scenario.duration_s)} · ",
            ("healthy", "green") if healthy else ("falling behind", "red"),
        )

    def _room(self, state: State) -> int:
        """The number of event lines that fit on the terminal."""
        rows = 3 + (self._scenario.objective.throughput_per_s is not None)
        above = 2 + (rows + 2) + (len(state.topology.components) + 2) + 2 + 1
        return min(MOST_EVENTS, max(FEWEST_EVENTS, self._live.console.height - above))


def event_lines(events: Sequence[Record], room: int) -> RenderableType:
    """Always exactly `room` lines, so that the view does not jump."""
    from rich.console import Group
    from rich.text import Text

    lines = [Text(visible(event_line(record)), style=KIND_STYLES.get(record.kind, "")) for record in events[-room:]]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines, *[Text("")] * (room - len(lines)))


def rates(truth: Sequence[TruthSample], scenario: Scenario, width: int) -> RenderableType:
    """Load, throughput and a throughput objective share a scale; the backlog has its own."""
    from rich.text import Text

    cells = max(10, width - WIDEST_LABEL - 14)
    times_s = [sample.at_s for sample in truth]
    load = [sample.arrival_per_s for sample in truth]
    taken_per_s = [sample.taken_per_s for sample in truth]
    backlog = [sample.pending_rows for sample in truth]
    objective = [scenario.objective.throughput_per_s or 0.0] * len(truth)
    highest = max([*load, *taken_per_s, *objective], default=0.0)
    aim = [("objective", objective, highest, "/s", "green")] if scenario.objective.throughput_per_s is not None else []
    lines = [
        *aim,
        ("load", load, highest, "/s", "bright_black"),
        ("throughput", taken_per_s, highest, "/s", "cyan"),
        ("backlog", backlog, max(backlog, default=0.0), "", "yellow"),
    ]
    text = Text()
    for label, values, top, unit, colour in lines:
        text.append(f"{label:<{WIDEST_LABEL}} ")
        text.append(sparkline(times_s, values, scenario.duration_s, top, cells), style=colour)
        now = f"{format_count(values[-1])}{unit}" if values else "-"
        text.append(f" {now:>12}\n")
    text.right_crop(1)
    return text


def sparkline(times_s: Sequence[float], values: Sequence[float], duration_s: float, top: float, cells: int) -> str:
    """The whole run from left to right. Each cell shows the largest value of its interval; the future is blank."""
    largest: dict[int, float] = {}
    for at_s, value in zip(times_s, values, strict=True):
        cell = min(max(ceil(at_s / duration_s * cells), 1), cells) - 1  # a sample covers the time before it
        largest[cell] = max(largest.get(cell, 0.0), value)
    line, level = "", " "
    newest = max(largest, default=-1)
    for cell in range(cells):
        if cell in largest:
            level = SPARKS[min(int(largest[cell] / top * len(SPARKS)), len(SPARKS) - 1)] if top > 0 else SPARKS[0]
        line += level if cell <= newest else " "
    return line


def _instances(state: State, latest: Observation | None, width: int) -> RenderableType:
    from rich.text import Text

    configuration = state.observed
    scaled_by = {component.name: component.scaled_by for component in state.topology}
    counts = {name: configuration[knob] for name, knob in scaled_by.items() if knob in configuration.values}
    if any(component.scaled_by.kind == EXECUTORS for component in state.topology):
        counts = {knob.kind: value for knob, value in configuration.values.items() if knob.kind == EXECUTORS}
    longest = max(1, width - WIDEST_LABEL - 40)
    per_cell = max(1.0, max(counts.values(), default=1) / longest)
    text = Text()
    for name, count in counts.items():
        text.append(f"{name[:WIDEST_LABEL]:<{WIDEST_LABEL}} ")
        text.append("█" * round(count / per_cell), style="blue")
        text.append(f" {count:g}")
        _append_state(text, latest, name)
        text.append("\n")
    text.right_crop(1)
    return text


def _append_state(text: Text, latest: Observation | None, name: str) -> None:
    """How busy the component is and how much backpressure it causes, if that was measured."""
    sample = latest.tasks.get(name) if latest is not None else None
    if latest is None or sample is None or not sample.instances:
        return
    busy = float(sample.run_s.sum()) / (sample.instances * latest.span_s)
    pressured_share = float(sample.pressured_s.max()) / latest.span_s
    if isfinite(busy):
        text.append(f"  busy {busy:.0%}")
    if isfinite(pressured_share):
        _, word, colour = next((each for each in PRESSURE_WORDS if pressured_share <= each[0]), PRESSURE_WORDS[-1])
        text.append("  pressure ")
        text.append(word, style=colour)


def watch(scenario: Scenario, policy: str, out: Console, speed: float) -> tuple[Live, LiveView]:
    from rich.live import Live

    live = Live(console=out, auto_refresh=False)
    return live, LiveView(scenario, policy, live, speed)
