"""Measures the memory, the log, the threads and the files of one manager over many simulated days.

All queries run in one process, over one log file and with the retention of the product, while the dashboard serves the
same log from another process. Before the first day there is a day with more batches, which fills every bounded window
of the loop. The ages of the retention are scaled down to fit into the first day. So from the second day on, nothing may
grow.
"""

from __future__ import annotations

import gc
import math
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np

from homeostat.core.traffic import KEPT, MINUTE_S, Traffic
from homeostat.lab.bench.dashboard import server
from homeostat.lab.bench.steady_query import DAY_S, HOUR_S, SteadyQuery
from homeostat.policies import registry
from homeostat.runtime.diary import Diary
from homeostat.runtime.manager import Manager
from homeostat.runtime.model_keeper import ModelKeeper
from homeostat.settings import LogSettings
from homeostat.store.retention import Retention
from homeostat.store.sqlite import SqliteStore

SAMPLE_S = 6 * HOUR_S
FIRST_DAY = 1.0
# Before the first day: as many batches as the state of the loop holds at most, one every 40 s.
_WARM_UP_S, _WARM_UP_BATCH_S = DAY_S, 40.0
# A cycle of every query each hour, and forecasts for every tenth query: a forecast takes some tenths of a second, and
# with one for each query and batch thirty days would take a day.
CADENCE = "1 h"
_FORECASTING = 10
# The ages of the settings, shortened so that all of them end within the first day.
AGES = LogSettings.model_validate(
    {"detail": "4 h", "minutes": "10 h", "hours": "18 h", "findings": "8 h", "decisions": "18 h"}
)
_TIMEOUT_S = 120.0
_QUANTILE = 1.96


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the process of the manager, at the process of the dashboard, and at the log.

    `blocks` counts what Python has allocated. If they do not grow and the resident memory does, the allocator keeps
    free memory.
    """

    day: float
    resident_mb: float
    server_mb: float
    store_mb: float
    file_mb: float
    records: int
    threads: int
    files: int
    worst_cycle_s: float
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class Trend:
    """Growth a day with its 95 % interval. The interval is wider if neighbouring values are correlated."""

    per_day: float
    low: float
    high: float

    @property
    def within_noise(self) -> bool:
        return self.low <= 0.0 <= self.high


def measure(
    *, days: float, queries: int, batch_s: float, tell: Callable[[str], None], warm_up_s: float = _WARM_UP_S
) -> dict[str, Any]:
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        samples = list(_samples(Path(scratch) / "log.sqlite", days, queries, batch_s, warm_up_s, tell))
    return {
        "machine": platform.platform(),
        "days": days,
        "queries": queries,
        "batch_s": batch_s,
        "batches": int(days * DAY_S / batch_s + warm_up_s / _WARM_UP_BATCH_S) * queries,
        "took_s": round(time.monotonic() - began_s),
        "retention": {name: getattr(AGES, name) for name in ("detail", "minutes", "hours", "findings", "decisions")},
        **trends(samples),
        "worst_cycle_s": round(max(sample.worst_cycle_s for sample in samples), 3),
        "threads": [min(sample.threads for sample in samples), max(sample.threads for sample in samples)],
        "files": [min(sample.files for sample in samples), max(sample.files for sample in samples)],
        "samples": [asdict(sample) for sample in samples],
    }


def trends(samples: Sequence[Sample]) -> dict[str, Any]:
    """The growth of each size after the first day."""
    settled = [sample for sample in samples if sample.day >= FIRST_DAY]
    figures: dict[str, Any] = {}
    for name in ("resident_mb", "server_mb", "store_mb", "blocks"):
        values = [getattr(sample, name) for sample in settled]
        slope = trend([sample.day for sample in settled], values)
        figures[name] = {
            "first": round(values[0], 2) if values else None,
            "last": round(values[-1], 2) if values else None,
            "growth_a_day": round(slope.per_day, 4),
            "interval": [round(slope.low, 4), round(slope.high, 4)],
            "within_noise": slope.within_noise,
        }
    return figures


def trend(days: Sequence[float], values: Sequence[float]) -> Trend:
    """Fit a straight line by least squares. With correlation r of neighbours, n values count as n (1 − r) / (1 + r)."""
    if len(days) < 4:
        return Trend(math.nan, -math.inf, math.inf)
    x, y = np.asarray(days, float) - np.mean(days), np.asarray(values, float)
    slope = float(x @ y / (x @ x))
    residuals = y - y.mean() - slope * x
    spread = float(residuals @ residuals)
    r = min(max(float(residuals[1:] @ residuals[:-1]) / spread, 0.0), 0.9) if spread > 0 else 0.0
    counted = max(len(x) * (1 - r) / (1 + r), 3.0)
    error = math.sqrt(spread / (counted - 2) / float(x @ x) * (1 + r) / (1 - r))
    return Trend(slope, slope - _QUANTILE * error, slope + _QUANTILE * error)


class _Application:
    """All managers over one log. `advance` lets every query do one batch, and the retention one slice."""

    def __init__(self, log: Path, queries: int, start_s: float) -> None:
        self.store = SqliteStore(log)
        self.now_s = start_s
        self._retention = Retention(self.store, AGES)
        self._managers = [self._manager(number, start_s) for number in range(queries)]
        self.worst_cycle_s = 0.0
        for manager in self._managers:
            manager.start()

    def advance(self, batch_s: float) -> None:
        self.now_s += batch_s
        began_s = time.perf_counter()
        for manager in self._managers:
            manager.advance(self.now_s)
        self._retention.slice()
        self.worst_cycle_s = max(self.worst_cycle_s, time.perf_counter() - began_s)

    def _manager(self, number: int, start_s: float) -> Manager:
        run, query = f"endurance/query{number}", SteadyQuery(number, start_s)
        ahead = number % _FORECASTING == 0
        policy = registry.build(
            "provisioning", {"loop": {"cadence": CADENCE, "window": CADENCE}, "planning": {"ahead": ahead}}
        )
        diary, keeper = Diary(self.store, run, policy), ModelKeeper(self.store, run)

        def after_step(trace: Any, state: Any) -> None:
            diary.note(trace, state)
            if trace.records:
                keeper.look(policy, state, query.now_s)

        # As after a restart: the arrivals of the two weeks before are known.
        first = int(start_s / MINUTE_S) - KEPT
        traffic = Traffic(first, tuple(query.load_per_s((first + minute) * MINUTE_S) for minute in range(KEPT)))
        return Manager(query, policy, self.store, run, traffic=traffic, on_step=after_step)


def _samples(
    log: Path, days: float, queries: int, batch_s: float, warm_up_s: float, tell: Callable[[str], None]
) -> Iterator[Sample]:
    start_s = time.time() - days * DAY_S
    application = _Application(log, queries, start_s - warm_up_s)
    with ExitStack() as stack:
        stack.callback(application.store.close)
        while application.now_s < start_s:
            application.advance(_WARM_UP_BATCH_S)
        host, port, process = stack.enter_context(server(log))
        for number in range(1, int(days * DAY_S / SAMPLE_S) + 1):
            while application.now_s < start_s + number * SAMPLE_S:
                application.advance(batch_s)
            for path in ("/", "/query?run=endurance/query0", "/series.json?run=endurance/query0&last=all"):
                _get(host, port, path)
            sample = _look(application, number * SAMPLE_S / DAY_S, process)
            application.worst_cycle_s = 0.0
            if number % 4 == 0:
                tell(
                    f"day {sample.day:g}: {sample.resident_mb:.1f} MB resident, log {sample.store_mb:.1f} MB, "
                    f"worst cycle {sample.worst_cycle_s:.2f} s"
                )
            yield sample


def _look(application: _Application, day: float, server_process: int) -> Sample:
    import psutil

    gc.collect()
    me, size = psutil.Process(), application.store.usage()
    return Sample(
        day,
        me.memory_info().rss / 1e6,
        psutil.Process(server_process).memory_info().rss / 1e6,
        size.used_bytes / 1e6,
        size.file_bytes / 1e6,
        application.store.position(),
        me.num_threads(),
        me.num_fds(),
        round(application.worst_cycle_s, 3),
        sys.getallocatedblocks(),
    )


def _get(host: str, port: int, path: str) -> None:
    connection = HTTPConnection(host, port, timeout=_TIMEOUT_S)
    connection.request("GET", path, headers={"accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != HTTPStatus.OK:
        raise RuntimeError(f"{path} answered {answer.status}")
