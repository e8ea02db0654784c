"""Measures the cost of the dashboard: how long its pages take with a large log, and how much open pages slow the
loop."""

from __future__ import annotations

import http.client
import json
import math
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from homeostat.core.record_json import JSON
from homeostat.core.records import BATCH, Record
from homeostat.lab.bench.control import scenario
from homeostat.policies import registry
from homeostat.runtime.diary import Diary
from homeostat.runtime.manager import Manager
from homeostat.sim.dataflow.engine import Dataflow
from homeostat.store.sqlite import SqliteStore

DAY_S = 86_400.0
REPEATS = 5
ROUNDS = 6
CHAIN = ("symptom", "diagnosis", "proposal", "action", "receipt", "outcome")
ACTIONS_A_DAY = 4
LIVE = "bench/live"
TIMEOUT_S = 120.0
_TICK_S = 10.0


def measure(
    *,
    queries: int,
    instances: int,
    days: float,
    batch_s: float,
    viewers: int,
    cycles: int,
    tell: Callable[[str], None],
    rounds: int = ROUNDS,
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "log.sqlite"
        tell(f"writing {days:g} days of {queries} queries")
        records = write_history(log, queries, days, batch_s)
        loop = _Loop(log, instances)
        with server(log) as (host, port, _):
            tell("asking for the views")
            views = _views(host, port, log)
            tell(f"{rounds} rounds of {cycles} cycles of the loop without and with {viewers} dashboards")
            cycle_times, reads = _rounds(loop, host, port, viewers, cycles, rounds)
        loop.store.close()
    return {
        "machine": platform.platform(),
        "load_average": round(os.getloadavg()[0], 2),
        "queries": queries,
        "instances": instances,
        "days": days,
        "records": records,
        **views,
        "viewers": viewers,
        "pages_read_per_cycle": round(reads / (rounds * cycles), 1),
        **_comparison_json(cycle_times),
    }


def write_history(log: Path, queries: int, days: float, batch_s: float) -> int:
    """Write runs with a daily wave of load and a few decisions a day, up to now. Returns the number of records."""
    store, now_s, count = SqliteStore(log), time.time(), 0
    dice = random.Random(1)
    for number in range(queries):
        run = f"app{number // 20}/query{number}"
        batches = [
            _batch(place, now_s - days * DAY_S + place * batch_s, batch_s, dice)
            for place in range(int(days * DAY_S / batch_s))
        ]
        decisions = [
            record
            for decision in range(int(days * ACTIONS_A_DAY))
            for record in _decision(decision, now_s - decision * DAY_S / ACTIONS_A_DAY)
        ]
        store.append(run, batches)
        store.append(run, decisions)
        count += len(batches) + len(decisions)
    store.close()
    return count


def _batch(number: int, at_s: float, span_s: float, dice: random.Random) -> Record:
    load = 1_000.0 * (1.5 + math.sin(number * span_s / DAY_S * 2 * math.pi)) * dice.uniform(0.95, 1.05)
    body: dict[str, JSON] = {
        "rows": load * span_s,
        "seconds": span_s * dice.uniform(0.5, 0.9),
        "trigger_s": span_s,
        "arrival_per_s": load,
        "pending_rows": load * span_s,
        "span_s": span_s,
        "phases_s": {"addBatch": 0.5 * span_s, "walCommit": 0.1, "commitOffsets": 0.1},
        "state_rows": 1e6,
        "batch": number,
        "executors": 4,
        "workers": 4,
    }
    return Record(f"b-{number}", BATCH, at_s, f"batch {number}", body=body)


def _decision(number: int, at_s: float) -> list[Record]:
    ids = [f"{kind[0]}{place}-{number}" for place, kind in enumerate(CHAIN)]
    because = [(), *((id,) for id in ids)]
    body: dict[str, JSON] = {"cause": "under-provisioned", "probability": 0.9, "action": ids[3], "applied": True}
    return [
        Record(id, kind, at_s + place, f"{kind} {number}", "count", before, body)
        for place, (id, kind, before) in enumerate(zip(ids, CHAIN, because, strict=False))
    ]


class Cycle(NamedTuple):
    """One turn of the loop: its duration, and its CPU time."""

    seconds: float
    cpu_s: float


class _Round(NamedTuple):
    quiet: list[Cycle]
    with_dashboards: list[Cycle]


class _Loop:
    """A manager over a simulated engine that writes to the same log. `cycle` runs one turn and returns its times."""

    def __init__(self, log: Path, instances: int) -> None:
        self.store = SqliteStore(log)
        engine = Dataflow(scenario(instances, 3_600.0))
        policy = registry.build("provisioning")
        diary = Diary(self.store, LIVE, policy)
        self._manager = Manager(engine, policy, self.store, LIVE, on_step=diary.note)
        self._manager.start()
        for _ in range(20):
            self.cycle()

    def cycle(self) -> Cycle:
        events = self._manager.engine.wait(self._manager.engine.now_s + _TICK_S)
        began_s, cpu_s = time.perf_counter(), time.thread_time()
        self._manager.think(events)
        return Cycle(time.perf_counter() - began_s, time.thread_time() - cpu_s)


@contextmanager
def server(log: Path) -> Iterator[tuple[str, int, int]]:
    """`homeostat serve` in a process of its own: its host, its port and the id of the process."""
    command = [sys.executable, "-m", "homeostat.cli.main", "serve", "--store", str(log), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        announcement = "".join(iter(server.stdout.readline, "}\n"))
        address = urlsplit(json.loads(announcement + "}")["told"].split()[-1])
        try:
            yield str(address.hostname), int(address.port or 0), server.pid
        finally:
            server.terminate()


def _views(host: str, port: int, log: Path) -> dict[str, Any]:
    """Time the first answer of a new server, then each page several times, then the arrival of a new record."""
    figures: dict[str, Any] = {"first_view_s": round(_request_s(host, port, "/"), 3)}
    # A different address each time, because the server answers a recent one from its cache.
    runs = [urlencode({"run": f"app0/query{number}"}) for number in range(REPEATS)]
    views = {
        "list": [f"/?limit={500 - number}" for number in range(REPEATS)],
        "query": [f"/query?{run}" for run in runs],
        "charts": [f"/series.json?{run}&last=7+d" for run in runs],
    }
    for name, paths in views.items():
        figures[f"{name}_s"] = round(median(_request_s(host, port, path) for path in paths), 3)
    figures["live_s"] = round(median(_live(host, port, log, number) for number in range(REPEATS)), 3)
    return figures


def _request_s(host: str, port: int, path: str) -> float:
    began_s = time.perf_counter()
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    connection.request("GET", path, headers={"accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != http.client.OK:
        raise RuntimeError(f"{path} answered {answer.status}")
    return time.perf_counter() - began_s


def _live(host: str, port: int, log: Path, number: int) -> float:
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    connection.request("GET", "/events?run=app0%2Fquery0")
    stream = connection.getresponse()
    stream.readline()
    store = SqliteStore(log)
    began_s = time.perf_counter()
    store.append("app0/query0", [Record(f"n-{number}", "alert", time.time(), "news")])
    while not stream.readline().startswith(b"data:"):
        pass
    store.close()
    connection.close()
    return time.perf_counter() - began_s


def _rounds(loop: _Loop, host: str, port: int, viewers: int, cycles: int, count: int) -> tuple[list[_Round], int]:
    """Cycles without and with dashboards in turn, so that other work of the machine slows both alike. Also returns how
    often a page was read."""
    rounds, reads = [], 0
    with _dashboards(host, port, viewers) as dashboards:
        for _ in range(count):
            quiet = _run_cycles(loop, cycles)
            dashboards.open()
            with_dashboards = _run_cycles(loop, cycles)
            reads += dashboards.close()
            rounds.append(_Round(quiet, with_dashboards))
    return rounds, reads


def _run_cycles(loop: _Loop, cycles: int) -> list[Cycle]:
    """One cycle per second, as in a run."""
    cycle_times: list[Cycle] = []
    for _ in range(cycles):
        cycle_times.append(loop.cycle())
        time.sleep(max(0.0, 1.0 - cycle_times[-1].seconds))
    return cycle_times


def _comparison_json(rounds: list[_Round]) -> dict[str, Any]:
    """Medians over all cycles, and the ratio of each round. The CPU time shows whether a cycle worked or waited."""
    ratios = sorted(_ratio(each.with_dashboards, each.quiet, "seconds") for each in rounds)
    quiet = [cycle for each in rounds for cycle in each.quiet]
    with_dashboards = [cycle for each in rounds for cycle in each.with_dashboards]
    return {
        "cycle_ms_alone": round(1e3 * _middle(quiet, "seconds"), 2),
        "cycle_ms_watched": round(1e3 * _middle(with_dashboards, "seconds"), 2),
        "cycle_ratio": round(_ratio(with_dashboards, quiet, "seconds"), 3),
        "cycle_ratio_of_rounds": [round(ratio, 3) for ratio in ratios],
        "cycle_cpu_ratio": round(_ratio(with_dashboards, quiet, "cpu_s"), 3),
    }


def _middle(cycles: list[Cycle], what: str) -> float:
    return float(median(getattr(cycle, what) for cycle in cycles))


def _ratio(with_dashboards: list[Cycle], quiet: list[Cycle], what: str) -> float:
    return _middle(with_dashboards, what) / _middle(quiet, what)


class _Dashboards:
    def __init__(self, viewing: subprocess.Popen[str]) -> None:
        self._viewing = viewing

    def open(self) -> None:
        self._say()

    def close(self) -> int:
        reads = int(self._say())
        if reads < 0:
            raise RuntimeError("a dashboard was not answered")
        return reads

    def _say(self) -> str:
        assert self._viewing.stdin is not None
        assert self._viewing.stdout is not None
        self._viewing.stdin.write("\n")
        self._viewing.stdin.flush()
        return self._viewing.stdout.readline()


@contextmanager
def _dashboards(host: str, port: int, count: int) -> Iterator[_Dashboards]:
    command = [sys.executable, "-m", "homeostat.lab.bench.open_dashboards", host, str(port), LIVE, str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as viewing:
        yield _Dashboards(viewing)
        assert viewing.stdin is not None
        viewing.stdin.close()
