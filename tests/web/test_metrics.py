"""What Prometheus reads: documented names, right numbers, and labels that do no harm."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest

from homeostat.core.records import Record
from homeostat.store.sqlite import SqliteStore
from homeostat.web.metrics import METRICS, exposition
from support.living import Living
from support.paths import ROOT

LINE = re.compile(r'^([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)$')


def test_every_line_can_be_read_and_says_what_the_log_says(client: httpx.Client, words: Living) -> None:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    values = {(m[1], m[2]): float(m[3]) for line in lines if (m := LINE.match(line))}
    assert len(values) == len(lines)
    run = 'run="app/words"'
    assert values[("homeostat_query_healthy", run)] == 1
    assert values[("homeostat_query_healthy", 'run="app/advised"')] == 0
    assert values[("homeostat_process_rows_per_second", run)] == pytest.approx(200, rel=0.05)
    actions = len(words.store.records(words.run, kinds=("action",)))
    assert values[("homeostat_records_total", run + ',kind="action"')] == actions


def test_labels_are_bounded_and_no_two_samples_are_the_same(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.sqlite")
    for end in ("1", "2"):
        store.append("x" * 500 + end, [Record(f"k-{n}", f"kind {n}", 1e9, "") for n in range(50)])
        store.append("x" * 500 + end, [Record("a-1", "action", 1e9, "")])
    lines = [line.rpartition(" ")[0] for line in exposition(store).splitlines() if not line.startswith("#")]
    store.close()
    assert len(lines) == len(set(lines))
    assert max(map(len, lines)) < 250
    assert [line for line in lines if "records_total" in line] == [
        f'homeostat_records_total{{run="{"x" * 120}",kind="action"}}'
    ]


def test_every_metric_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `(homeostat_[a-z_]+)` \| ([a-z]+) \|", page, re.M))
    assert documented == {metric.name: metric.kind for metric in METRICS}


def test_the_grafana_dashboard_asks_for_metrics_that_there_are() -> None:
    board = json.loads((ROOT / "docs" / "grafana" / "homeostat.json").read_text(encoding="utf-8"))
    names = {
        name for panel in board["panels"] for t in panel["targets"] for name in re.findall(r"homeostat_\w+", t["expr"])
    }
    assert names <= {metric.name for metric in METRICS}
    assert len(names) >= 10
