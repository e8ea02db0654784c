"""`homeostat watch`: any running Spark application, through its REST API."""

from __future__ import annotations

import json as encoder
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homeostat.cli.live_display import MOST_EVENTS, event_line, event_lines, shown
from homeostat.cli.output import JsonFlag, clock, console, plain
from homeostat.core.errors import ConfigError
from homeostat.strict.units import format_count

if TYPE_CHECKING:
    from rich.console import RenderableType

    from homeostat.core.cycle import Trace
    from homeostat.core.loop_state import State
    from homeostat.core.observation import Observation
    from homeostat.core.records import Record
    from homeostat.runtime.manager import Manager
    from homeostat.spark.outside.remote_application import WatchedApplication
    from homeostat.spark.sense.rest_client import RestClient

STEP_S = 1.0
FIRST_TIMEOUT_S = 30.0
MORE_S = 5.0  # for what is asked next, and for a request that ends by its own limit to say so
GONE_S = 60.0
UNKNOWN = "unknown"
NO_QUERY = "no streaming query has been seen yet"


def watch(
    url: Annotated[str, typer.Argument(metavar="URL", help="Of the application's page, such as http://driver:4040.")],
    event_log: Annotated[
        Path | None,
        typer.Option(
            "--event-log", metavar="DIR", exists=True, help="Its event log, for what the REST API does not show."
        ),
    ] = None,
    application: Annotated[
        str, typer.Option("--application", metavar="ID", help="Which one, if several are behind the URL.")
    ] = "",
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Stop after this time, such as 30s.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Watch a running Spark application: stages, tasks, workers, batch times, and what is wrong. Nothing is changed."""
    from homeostat.spark.outside.event_log import EventLog
    from homeostat.spark.outside.remote_application import WatchedApplication
    from homeostat.spark.sense.rest_client import RestClient

    for_s = _seconds(for_)
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{url!r} is no address", where="watch", fix="give one such as http://driver:4040")
    with closing(RestClient(url, application, first_timeout_s=FIRST_TIMEOUT_S)) as rest:
        found = _first_answer(rest, application)
        log = EventLog(event_log, rest.application()) if event_log is not None else None
        watched = WatchedApplication(rest, log)
        watched.start()
        try:
            with _view(found, json=json) as view:
                _follow(watched, view, time.time() + for_s)
        finally:
            watched.stop()


def _seconds(text: str | None) -> float:
    if text is None:
        return math.inf
    from homeostat.strict.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(str(error), where="--for") from None


def _first_answer(rest: RestClient, wanted: str) -> str:
    """So that a wrong address, or an application that is not there, is told at once."""
    from homeostat.spark.sense.rest_client import SensorError
    from homeostat.strict.toml_problems import nearest

    def found() -> str:
        there = [each.id for each in rest.applications()]
        if wanted and wanted not in there:
            what = f"there is no application {wanted!r}"
            raise ConfigError(what, where=rest.base_url, fix=nearest(wanted, there))
        return f"{rest.application()}, Spark {rest.version()}"

    try:
        return _within(FIRST_TIMEOUT_S + MORE_S, found)
    except SensorError as error:
        if error.fix:
            raise
        fix = "give the address of a running application's web page, such as http://driver:4040"
        what = f"no Spark application answers there: {error.what}"
        raise SensorError(what, where=rest.base_url, fix=fix) from error


def _within(limit_s: float, ask: Callable[[], str]) -> str:
    """Whoever answers byte by byte keeps every limit of a request, and a name may take for ever to look up."""
    from homeostat.spark.sense.rest_client import SensorError

    answers: SimpleQueue[str | Exception] = SimpleQueue()

    def answered() -> None:
        try:
            answers.put(ask())
        except Exception as error:
            answers.put(error)

    thread = threading.Thread(target=answered, name="homeostat first answer", daemon=True)
    thread.start()
    try:
        answer = answers.get(timeout=limit_s)
    except Empty:
        raise SensorError(f"no whole answer within {limit_s:g} s") from None
    thread.join()
    if isinstance(answer, Exception):
        raise answer
    return answer


def _follow(watched: WatchedApplication, view: View, until_s: float) -> None:
    """Each query has a loop of its own, which only observes. It ends with the application."""
    from homeostat.policies import registry
    from homeostat.runtime.manager import Manager
    from homeostat.spark.sense.rest_client import SensorError
    from homeostat.store.in_memory import MemoryStore

    managers: dict[str, Manager] = {}
    while time.time() < until_s:
        now_s = time.time()
        if watched.sensors.silent_s > GONE_S:
            what = f"no answer for {GONE_S:.0f} s: the application has ended, or cannot be reached any more"
            raise SensorError(what, where=watched.address)
        for query in watched.queries():
            if query.query not in managers:
                policy = registry.build("provisioning")
                made = Manager(query, policy, MemoryStore(), query.query, mode="observe", on_step=view.of(query.query))
                made.start()
                managers[query.query] = made
            managers[query.query].advance(now_s)
        view.draw(watched, managers)
        time.sleep(max(0.0, min(now_s + STEP_S, until_s) - time.time()))


class View:
    """A line for each batch and each finding."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._seen: dict[str, tuple[str, int]] = {}
        self._told = False

    def of(self, query: str) -> Callable[[Trace, State], None]:
        def on_step(trace: Trace, state: State) -> None:
            latest = state.window[-1] if state.window else None
            if latest is not None and self._seen.get(query) != (latest.run, latest.batch):
                self._seen[query] = (latest.run, latest.batch)
                self.batch(query, latest)
            for record in filter(shown, trace.records):
                self.record(query, record)

        return on_step

    def batch(self, query: str, seen: Observation) -> None:
        self._write(batch_line(query, seen))

    def record(self, query: str, record: Record) -> None:
        self._write(event_line(record))

    def draw(self, watched: WatchedApplication, managers: dict[str, Manager]) -> None:
        """Lines are written as things happen; the first tells that nothing does."""
        if not managers and not self._told:
            self.nothing()
        self._told = True

    def nothing(self) -> None:
        self._write(NO_QUERY)


class JsonView(View):
    """One JSON object for each batch and each finding."""

    def batch(self, query: str, seen: Observation) -> None:
        self._write(encoder.dumps(plain(batch_json(query, seen)), allow_nan=False))

    def record(self, query: str, record: Record) -> None:
        found = {"kind": record.kind, "query": query, "at_s": record.at_s, "component": record.component}
        self._write(encoder.dumps(plain({**found, "text": record.text}), allow_nan=False))

    def nothing(self) -> None:
        self._write(encoder.dumps({"kind": "note", "text": NO_QUERY}))


class Picture(View):
    """On a terminal: the latest batch of each query, stage by stage, and what was found."""

    def __init__(self, title: str, update: Callable[[RenderableType], None]) -> None:
        super().__init__(lambda line: None)
        self._title, self._update = title, update
        self._latest: dict[str, Observation] = {}
        self._records: deque[Record] = deque(maxlen=MOST_EVENTS)

    def batch(self, query: str, seen: Observation) -> None:
        self._latest[query] = seen

    def record(self, query: str, record: Record) -> None:
        self._records.append(record)

    def draw(self, watched: WatchedApplication, managers: dict[str, Manager]) -> None:
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        workers = watched.sensors.workers()
        under_way = watched.sensors.under_way()
        lines = [self._title, f"workers  {worker_words(workers.ids, workers.hosts)}"]
        if under_way is not None:
            where = f" in {under_way.component}" if under_way.component else ""
            done = f", {under_way.tasks_done} of {under_way.tasks} tasks" if under_way.tasks else ""
            lines.append(f"batch {under_way.batch} runs for {time.time() - under_way.since_s:.0f} s{where}{done}")
        if not managers:
            lines.append(NO_QUERY)
        tables = [_stages(query, seen) for query, seen in self._latest.items()]
        found = Panel(event_lines(list(self._records), MOST_EVENTS), title="what was found", title_align="left")
        self._update(Group(Text("\n".join(lines)), *tables, found))


@contextmanager
def _view(title: str, *, json: bool) -> Iterator[View]:
    def write(line: str) -> None:
        print(line, flush=True)

    if json:
        yield JsonView(write)
    elif not sys.stdout.isatty():
        write(title)
        yield View(write)
    else:
        from rich.live import Live

        with Live(console=console(), auto_refresh=False) as live:
            yield Picture(title, lambda drawn: live.update(drawn, refresh=True))


def number(value: float, unit: str = "") -> str:
    """What was not seen is not zero."""
    return f"{format_count(value)}{unit}" if math.isfinite(value) else UNKNOWN


def worker_words(ids: tuple[str, ...], hosts: tuple[str, ...]) -> str:
    return ", ".join(f"{worker} on {host}" for worker, host in zip(ids, hosts, strict=True)) or UNKNOWN


def batch_line(query: str, seen: Observation) -> str:
    flow = seen.flows[0]
    took = f"{flow.seconds:.1f} s" if math.isfinite(flow.seconds) else UNKNOWN
    rows = sum(each.rows for each in seen.flows)
    arrival = sum(each.arrival_per_s for each in seen.flows)
    pending = sum(each.pending_rows for each in seen.flows)
    stages = ", ".join(f"{name} {tasks.instances}" for name, tasks in seen.tasks.items()) or UNKNOWN
    return (
        f"{clock(seen.at_s):>8}  batch {seen.batch} of {query}: {took}, {number(rows)} rows, arrival "
        f"{number(arrival, '/s')}, pending {number(pending)}; tasks: {stages}; "
        f"workers: {len(seen.workers.ids) or UNKNOWN}"
    )


def batch_json(query: str, seen: Observation) -> dict[str, Any]:
    return {
        "kind": "batch",
        "query": query,
        "run": seen.run,
        "batch": seen.batch,
        "at_s": seen.at_s,
        "seconds": seen.flows[0].seconds,
        "rows": sum(flow.rows for flow in seen.flows),
        "arrival_per_s": sum(flow.arrival_per_s for flow in seen.flows),
        "pending_rows": sum(flow.pending_rows for flow in seen.flows),
        "stages": [
            {
                "name": name,
                "tasks": tasks.instances,
                "rows": tasks.rows.tolist(),
                "run_s": tasks.run_s.tolist(),
                "finish_s": tasks.finish_s.tolist(),
                "worker": [seen.workers.ids[index] if index >= 0 else None for index in tasks.worker],
            }
            for name, tasks in seen.tasks.items()
        ],
        "workers": [{"id": w, "host": h} for w, h in zip(seen.workers.ids, seen.workers.hosts, strict=True)],
    }


def _stages(query: str, seen: Observation) -> RenderableType:
    import numpy as np
    from rich.table import Table

    table = Table(title=batch_line(query, seen).strip(), title_justify="left", box=None, header_style="bold")
    for column in ("stage", "tasks", "rows", "run, median s", "run, longest s", "stage took s"):
        table.add_column(column, justify="left" if column == "stage" else "right")
    for name, tasks in seen.tasks.items():
        known = tasks.run_s[np.isfinite(tasks.run_s)]
        times = (np.median(known), known.max()) if known.size else (np.nan, np.nan)
        longest = float(np.max(tasks.finish_s)) if tasks.instances else math.nan
        shown_times = [f"{value:.2f}" if math.isfinite(value) else UNKNOWN for value in (*times, longest)]
        table.add_row(name, str(tasks.instances), number(float(tasks.rows.sum())), *shown_times)
    return table
