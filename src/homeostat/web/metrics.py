"""The latest values of every run in the Prometheus text format. docs/reference/metrics.md explains each metric."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from homeostat.core.records import KINDS
from homeostat.log_views.overview import HEALTHY
from homeostat.store.protocol import Store
from homeostat.web.summary import RunSummary, summarise

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# A metrics server keeps a series for every label that it has ever seen, so their number must be bounded.
MOST_RUNS = 500
LONGEST_LABEL = 120

Samples = Iterable[tuple[Mapping[str, str], float | None]]


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: str
    meaning: str
    samples: Callable[[RunSummary], Samples]


def _latest(column: str) -> Callable[[RunSummary], Samples]:
    return lambda run: [({}, run.latest.get(column))]


def _objective(run: RunSummary) -> Samples:
    return [({}, run.objective.get("throughput_per_s"))]


METRICS = (
    Metric(
        "homeostat_query_healthy",
        "gauge",
        "1 if the query keeps up with the load, else 0",
        lambda r: [({}, float(r.health == HEALTHY))],
    ),
    Metric(
        "homeostat_regulation_paused",
        "gauge",
        "1 if somebody has paused regulation, else 0",
        lambda r: [({}, float(bool(r.paused)))],
    ),
    Metric("homeostat_input_rows_per_second", "gauge", "Rows that arrive per second", _latest("arrival_per_s")),
    Metric("homeostat_process_rows_per_second", "gauge", "Rows processed per second", _latest("process_per_s")),
    Metric("homeostat_objective_rows_per_second", "gauge", "Throughput objective, if one is set", _objective),
    Metric("homeostat_pending_rows", "gauge", "Rows waiting at the source", _latest("pending_rows")),
    Metric("homeostat_batch_duration_seconds", "gauge", "Duration of the last batch", _latest("seconds")),
    Metric("homeostat_trigger_interval_seconds", "gauge", "Trigger interval", _latest("trigger_s")),
    Metric(
        "homeostat_watermark_gap_seconds",
        "gauge",
        "How far the watermark is behind the clock",
        _latest("watermark_gap_s"),
    ),
    Metric("homeostat_state_rows", "gauge", "Rows in the state store", _latest("state_rows")),
    Metric("homeostat_state_bytes", "gauge", "Memory used by the state store", _latest("state_bytes")),
    Metric("homeostat_executors_wanted", "gauge", "Executors requested by the loop", _latest("executors")),
    Metric("homeostat_executors_alive", "gauge", "Executors that are running", _latest("workers")),
    Metric("homeostat_diagnoses_standing", "gauge", "Current diagnoses", lambda r: [({}, float(len(r.diagnoses)))]),
    Metric(
        "homeostat_records_total",
        "counter",
        'Records in the log by kind: kind="action" counts actions, kind="alert" alerts',
        lambda r: [({"kind": kind}, float(r.counts[kind])) for kind in KINDS if kind in r.counts],
    ),
)


def exposition(store: Store) -> str:
    infos = {info.name[:LONGEST_LABEL]: info for info in store.runs()[-MOST_RUNS:]}  # no two with one label
    runs = [summarise(store, info, time.time()) for info in infos.values()]
    lines: list[str] = []
    for metric in METRICS:
        lines += [f"# HELP {metric.name} {metric.meaning}", f"# TYPE {metric.name} {metric.kind}"]
        for run in runs:
            lines += [
                f"{metric.name}{_labels({'run': run.run, **labels})} {value:.10g}"
                for labels, value in metric.samples(run)
                if value is not None
            ]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{name}="{_escape(value[:LONGEST_LABEL])}"' for name, value in labels.items())
    return f"{{{inner}}}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
