"""The benchmark of the service, small: it measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.lab.bench.dashboard import measure, write_history
from homeostat.store.sqlite import SqliteStore

pytestmark = pytest.mark.slow


def test_it_times_every_view_and_the_loop_with_dashboards_and_without() -> None:
    lines: list[str] = []
    figures = measure(
        queries=5, instances=100, days=0.02, batch_s=60.0, viewers=2, cycles=1, rounds=2, tell=lines.append
    )
    assert (figures["queries"], figures["viewers"], len(lines)) == (5, 2, 3)
    for name in ("first_view_s", "list_s", "query_s", "charts_s", "live_s", "cycle_ms_alone", "cycle_ms_watched"):
        assert figures[name] > 0
    assert figures["cycle_ratio"] > 0
    assert len(figures["cycle_ratio_of_rounds"]) == 2
    assert 0 <= figures["pages_read_per_cycle"] <= 2 * 2  # each viewer for each cycle, and when it comes


def test_the_history_ends_now_and_has_decisions(tmp_path: Path) -> None:
    written = write_history(tmp_path / "log.sqlite", queries=5, days=1.0, batch_s=600.0)
    store = SqliteStore(tmp_path / "log.sqlite", read_only=True)
    runs = store.runs()
    assert len(runs) == 5
    assert sum(sum(run.counts.values()) for run in runs) == written
    assert (runs[0].counts["batch"], runs[0].counts["action"]) == (144, 4)
    assert [record.kind for record in store.chain(runs[0].name, "a3-0")][:3] == ["symptom", "diagnosis", "proposal"]
    store.close()
