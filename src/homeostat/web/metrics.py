"""The latest values of every run in the Prometheus text format. docs/reference/metrics.md explains each metric."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from homeostat.core.records import KINDS
from homeostat.store.protocol import Store
from homeostat.views.overview import HEALTHY
from homeostat.web.summary import summary

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Labels without bound are what a metrics server dies of.
MOST_RUNS = 500
LONGEST_LABEL = 120

Samples = Iterable[tuple[Mapping[str, str], float | None]]


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: str
    meaning: str
    samples: Callable[[Mapping[str, Any]], Samples]


def _latest(column: str) -> Callable[[Mapping[str, Any]], Samples]:
    return lambda run: [({}, run["latest"].get(column))]


def _objective(run: Mapping[str, Any]) -> Samples:
    return [({}, run["objective"].get("throughput_per_s"))]


METRICS = (
    Metric(
        "homeostat_query_healthy",
        "gauge",
        "1 if the query keeps up, else 0",
        lambda r: [({}, float(r["health"] == HEALTHY))],
    ),
    Metric(
        "homeostat_regulation_paused",
        "gauge",
        "1 if a person has paused regulation",
        lambda r: [({}, float(bool(r["paused"])))],
    ),
    Metric("homeostat_input_rows_per_second", "gauge", "rows that arrive", _latest("arrival_per_s")),
    Metric("homeostat_process_rows_per_second", "gauge", "rows that are processed", _latest("process_per_s")),
    Metric("homeostat_objective_rows_per_second", "gauge", "the throughput that is wanted, if one is", _objective),
    Metric("homeostat_pending_rows", "gauge", "rows that wait at the source", _latest("pending_rows")),
    Metric("homeostat_batch_duration_seconds", "gauge", "how long the last batch took", _latest("seconds")),
    Metric("homeostat_trigger_interval_seconds", "gauge", "how long a batch may take", _latest("trigger_s")),
    Metric(
        "homeostat_watermark_gap_seconds",
        "gauge",
        "how far the watermark is behind the clock",
        _latest("watermark_gap_s"),
    ),
    Metric("homeostat_state_rows", "gauge", "rows of state", _latest("state_rows")),
    Metric("homeostat_state_bytes", "gauge", "memory of the state", _latest("state_bytes")),
    Metric("homeostat_executors_wanted", "gauge", "executors that the loop wants", _latest("executors")),
    Metric("homeostat_executors_alive", "gauge", "executors that are there", _latest("workers")),
    Metric(
        "homeostat_diagnoses_standing", "gauge", "diagnoses that stand", lambda r: [({}, float(len(r["diagnoses"])))]
    ),
    Metric(
        "homeostat_records_total",
        "counter",
        'records of the log, by kind: kind="action" counts actions, kind="alert" alerts',
        lambda r: [({"kind": kind}, float(r["counts"][kind])) for kind in KINDS if kind in r["counts"]],
    ),
)


def exposition(store: Store) -> str:
    infos = {info.name[:LONGEST_LABEL]: info for info in store.runs()[-MOST_RUNS:]}  # no two with one label
    runs = [summary(store, info, time.time()) for info in infos.values()]
    lines: list[str] = []
    for metric in METRICS:
        lines += [f"# HELP {metric.name} {metric.meaning}", f"# TYPE {metric.name} {metric.kind}"]
        for run in runs:
            lines += [
                f"{metric.name}{_labels({'run': run['run'], **labels})} {value:.10g}"
                for labels, value in metric.samples(run)
                if value is not None
            ]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{name}="{_escaped(value[:LONGEST_LABEL])}"' for name, value in labels.items())
    return f"{{{inner}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
