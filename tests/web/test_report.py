"""A run in a few numbers: what the report says of its objective."""

from __future__ import annotations

from homeostat.core.record_json import JSON
from homeostat.core.records import Record
from homeostat.web.report import facts
from homeostat.web.series import contents


def batch(number: int, **differs: JSON) -> Record:
    body: dict[str, JSON] = {"rows": 1_000, "seconds": 4, "trigger_s": 10, "span_s": 10, "workers": 4}
    body |= {"arrival_per_s": 100, "pending_rows": 100}
    return Record(f"b-{number}", "batch", 1e9 + 10 * number, "", body=body | differs)


BATCHES = [batch(0), batch(1, pending_rows=3_000, seconds=9), batch(2, workers=8), batch(3, rows=500)]


def test_each_part_of_the_objective_is_judged_batch_by_batch() -> None:
    objective = {"throughput_per_s": 100.0, "lag_s": 20.0, "latency_p95_s": 15.0, "cost_limit": 4.0}
    rows = facts(contents(BATCHES), [], objective)
    assert rows["Objective: at least 100 rows/s"] == "75.0 % of the time"
    assert rows["Objective: lag of at most 20 s"] == "75.0 % of the time"
    assert rows["Objective: p95 latency of at most 15 s"] == "75.0 % of the time"
    assert rows["Objective: at most 4 workers"] == "75.0 % of the time"
    assert rows["Cost"] == "0.0556 worker hours"
    assert rows["Rows processed"] == "3,500"


def test_without_an_objective_only_keeping_up_is_reported() -> None:
    rows = facts(contents(BATCHES), [], {})
    assert [name for name in rows if "bjective" in name] == []
    assert rows["Kept up with the load"] == "75.0 % of the time"


def test_numbers_of_no_sense_make_no_report_fail() -> None:
    rows = facts(contents([batch(0, rows=1e308), batch(1, rows=1e308), batch(2, rows="many")]), [], {"lag_s": 1e-300})
    assert rows["Rows processed"] == "infinite"
