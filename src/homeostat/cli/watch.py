"""`homeostat watch`: watches any running Spark application through its REST API."""

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

from homeostat.cli.live_display import MOST_EVENTS, event_line, event_lines, is_shown
from homeostat.cli.output import JsonFlag, clock, console, plain, visible
from homeostat.core.errors import ConfigError
from homeostat.spark.clocks import STEADY
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
MORE_S = 5.0  # time for follow-up requests, and for a request to report its own timeout
GONE_S = 60.0
UNKNOWN = "unknown"
NO_QUERY = "waiting: no streaming query has run yet"


def watch(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Address of the application's Spark UI, such as http://driver:4040.")
    ],
    event_log: Annotated[
        Path | None,
        typer.Option(
            "--event-log",
            metavar="DIR",
            exists=True,
            help="Event log of the application, for data that the REST API does not provide.",
        ),
    ] = None,
    application: Annotated[
        str, typer.Option("--application", metavar="ID", help="Application id. Needed only if the URL serves several.")
    ] = "",
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Stop after this time, such as '30 s'.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Watch a running Spark application and report what is wrong. It changes nothing."""
    from homeostat.spark.outside.event_log import EventLog
    from homeostat.spark.outside.remote_application import WatchedApplication
    from homeostat.spark.sense.rest_client import RestClient

    for_s = _seconds(for_)
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{url!r} is not a URL", where="watch", fix="give a URL such as http://driver:4040")
    with closing(RestClient(url, application, first_timeout_s=FIRST_TIMEOUT_S)) as rest:
        title = _first_answer(rest, application)
        log = EventLog(event_log, rest.application()) if event_log is not None else None
        remote = WatchedApplication(rest, log)
        remote.start()
        try:
            with _view(title, json=json) as view:
                _follow(remote, view, STEADY.now_s() + for_s)
        finally:
            remote.stop()


def _seconds(text: str | None) -> float:
    if text is None:
        return math.inf
    from homeostat.strict.units import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise ConfigError(str(error), where="--for") from None


def _first_answer(rest: RestClient, id: str) -> str:
    """Ask once at the start, so that a wrong address or application is reported at once."""
    from homeostat.spark.sense.sensor_error import SensorError
    from homeostat.strict.toml_problems import nearest

    def ask() -> str:
        ids = [each.id for each in rest.applications()]
        if id and id not in ids:
            raise ConfigError(f"no application {id!r} at this address", where=rest.base_url, fix=nearest(id, ids))
        return f"{rest.application()}, Spark {rest.version()}"

    try:
        return _within(FIRST_TIMEOUT_S + MORE_S, ask)
    except SensorError as error:
        if error.fix:
            raise
        fix = "give the address of a running application's Spark UI, such as http://driver:4040"
        what = f"no Spark application answers at this address: {error.what}"
        raise SensorError(what, where=rest.base_url, fix=fix) from error


def _within(limit_s: float, ask: Callable[[], str]) -> str:
    """Limit the time of the whole answer: a server that sends byte by byte never hits the timeout of a request."""
    from homeostat.spark.sense.sensor_error import SensorError

    answers: SimpleQueue[str | Exception] = SimpleQueue()

    def put_answer() -> None:
        try:
            answers.put(ask())
        except Exception as error:
            answers.put(error)

    thread = threading.Thread(target=put_answer, name="homeostat first answer", daemon=True)
    thread.start()
    try:
        answer = answers.get(timeout=limit_s)
    except Empty:
        raise SensorError(f"no complete answer within {limit_s:g} s") from None
    thread.join()
    if isinstance(answer, Exception):
        raise answer
    return answer


def _follow(remote: WatchedApplication, view: View, until_s: float) -> None:
    """Observe every query with its own loop, until the application ends."""
    from homeostat.policies import registry
    from homeostat.runtime.manager import Manager
    from homeostat.spark.sense.sensor_error import SensorError
    from homeostat.store.in_memory import MemoryStore

    managers: dict[str, Manager] = {}
    while STEADY.now_s() < until_s:
        now_s = STEADY.now_s()
        if remote.sensors.silent_s > GONE_S:
            what = f"no answer for {GONE_S:.0f} s: the application has ended or cannot be reached"
            raise SensorError(what, where=remote.address)
        for query in remote.queries():
            if query.query not in managers:
                policy = registry.build("provisioning")
                manager = Manager(
                    query, policy, MemoryStore(), query.query, mode="observe", on_step=view.of(query.query)
                )
                manager.start()
                managers[query.query] = manager
            managers[query.query].advance(now_s)
        view.draw(remote, managers)
        time.sleep(max(0.0, min(now_s + STEP_S, until_s) - STEADY.now_s()))


class View:
    """Prints a line for each batch and each finding."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._last_batches: dict[str, tuple[str, int]] = {}
        self._has_drawn = False

    def of(self, query: str) -> Callable[[Trace, State], None]:
        def on_step(trace: Trace, state: State) -> None:
            latest = state.window[-1] if state.window else None
            if latest is not None and self._last_batches.get(query) != (latest.run, latest.batch):
                self._last_batches[query] = (latest.run, latest.batch)
                self.batch(query, latest)
            for record in filter(is_shown, trace.records):
                self.record(query, record)

        return on_step

    def batch(self, query: str, observation: Observation) -> None:
        self._write(batch_line(query, observation))

    def record(self, query: str, record: Record) -> None:
        self._write(event_line(record))

    def draw(self, remote: WatchedApplication, managers: dict[str, Manager]) -> None:
        """Says at the start that no query runs yet. Everything else is printed as it happens."""
        if not managers and not self._has_drawn:
            self.nothing()
        self._has_drawn = True

    def nothing(self) -> None:
        self._write(NO_QUERY)


class JsonView(View):
    """Prints a JSON object for each batch and each finding."""

    def batch(self, query: str, observation: Observation) -> None:
        self._write(encoder.dumps(plain(batch_json(query, observation)), allow_nan=False))

    def record(self, query: str, record: Record) -> None:
        fields = {"kind": record.kind, "query": query, "at_s": record.at_s, "component": record.component}
        self._write(encoder.dumps(plain({**fields, "text": record.text}), allow_nan=False))

    def nothing(self) -> None:
        self._write(encoder.dumps({"kind": "note", "text": NO_QUERY}))


class Picture(View):
    """Draws on a terminal: the latest batch of each query by stage, and the findings."""

    def __init__(self, title: str, update: Callable[[RenderableType], None]) -> None:
        super().__init__(lambda line: None)
        self._title, self._update = title, update
        self._latest: dict[str, Observation] = {}
        self._records: deque[Record] = deque(maxlen=MOST_EVENTS)

    def batch(self, query: str, observation: Observation) -> None:
        self._latest[query] = observation

    def record(self, query: str, record: Record) -> None:
        self._records.append(record)

    def draw(self, remote: WatchedApplication, managers: dict[str, Manager]) -> None:
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        workers = remote.sensors.workers()
        under_way = remote.sensors.under_way()
        lines = [self._title, f"workers  {worker_words(workers.ids, workers.hosts)}"]
        if under_way is not None:
            where = f" in {under_way.component}" if under_way.component else ""
            progress = f", {under_way.tasks_done} of {under_way.tasks} tasks" if under_way.tasks else ""
            running_s = STEADY.now_s() - under_way.since_s
            lines.append(f"batch {under_way.batch} has been running for {running_s:.0f} s{where}{progress}")
        if not managers:
            lines.append(NO_QUERY)
        tables = [_stages(query, observation) for query, observation in self._latest.items()]
        findings = Panel(event_lines(list(self._records), MOST_EVENTS), title="findings", title_align="left")
        self._update(Group(Text(visible("\n".join(lines))), *tables, findings))


@contextmanager
def _view(title: str, *, json: bool) -> Iterator[View]:
    def write(line: str) -> None:
        print(visible(line), flush=True)

    if json:
        yield JsonView(write)
    elif not sys.stdout.isatty():
        write(title)
        yield View(write)
    else:
        from rich.live import Live

        with Live(console=console(), auto_refresh=False) as live:
            yield Picture(title, lambda picture: live.update(picture, refresh=True))


def number(value: float, unit: str = "") -> str:
    """The number, or "unknown" if it was not measured."""
    return f"{format_count(value)}{unit}" if math.isfinite(value) else UNKNOWN


def worker_words(ids: tuple[str, ...], hosts: tuple[str, ...]) -> str:
    return ", ".join(f"{worker} on {host}" for worker, host in zip(ids, hosts, strict=True)) or UNKNOWN


def batch_line(query: str, observation: Observation) -> str:
    flow = observation.flows[0]
    took = f"{flow.seconds:.1f} s" if math.isfinite(flow.seconds) else UNKNOWN
    rows = sum(each.rows for each in observation.flows)
    arrival = sum(each.arrival_per_s for each in observation.flows)
    pending = sum(each.pending_rows for each in observation.flows)
    stages = ", ".join(f"{name} {tasks.instances}" for name, tasks in observation.tasks.items()) or UNKNOWN
    return (
        f"{clock(observation.at_s):>8}  batch {observation.batch} of {query}: {took}, {number(rows)} rows, arrival "
        f"{number(arrival, '/s')}, pending {number(pending)}; tasks: {stages}; "
        f"workers: {len(observation.workers.ids) or UNKNOWN}"
    )


def batch_json(query: str, observation: Observation) -> dict[str, Any]:
    return {
        "kind": "batch",
        "query": query,
        "run": observation.run,
        "batch": observation.batch,
        "at_s": observation.at_s,
        "seconds": observation.flows[0].seconds,
        "rows": sum(flow.rows for flow in observation.flows),
        "arrival_per_s": sum(flow.arrival_per_s for flow in observation.flows),
        "pending_rows": sum(flow.pending_rows for flow in observation.flows),
        "stages": [
            {
                "name": name,
                "tasks": tasks.instances,
                "rows": tasks.rows.tolist(),
                "run_s": tasks.run_s.tolist(),
                "finish_s": tasks.finish_s.tolist(),
                "worker": [observation.workers.ids[index] if index >= 0 else None for index in tasks.worker],
            }
            for name, tasks in observation.tasks.items()
        ],
        "workers": [
            {"id": w, "host": h} for w, h in zip(observation.workers.ids, observation.workers.hosts, strict=True)
        ],
    }


def _stages(query: str, observation: Observation) -> RenderableType:
    import numpy as np
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(visible(batch_line(query, observation).strip())), title_justify="left", box=None, header_style="bold"
    )
    for column in ("stage", "tasks", "rows", "run, median s", "run, longest s", "stage took s"):
        table.add_column(column, justify="left" if column == "stage" else "right")
    for name, tasks in observation.tasks.items():
        run_s = tasks.run_s[np.isfinite(tasks.run_s)]
        times = (np.median(run_s), run_s.max()) if run_s.size else (np.nan, np.nan)
        longest = float(np.max(tasks.finish_s)) if tasks.instances else math.nan
        shown_times = [f"{value:.2f}" if math.isfinite(value) else UNKNOWN for value in (*times, longest)]
        table.add_row(Text(visible(name)), str(tasks.instances), number(float(tasks.rows.sum())), *shown_times)
    return table
