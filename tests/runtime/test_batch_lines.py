"""One line of the log for each batch."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.configuration import EXECUTORS, Configuration, Knob
from homeostat.core.loop_state import State
from homeostat.core.observation import NAN, StateSample
from homeostat.core.records import SCHEMA_VERSION
from homeostat.runtime.batch_lines import Samples
from support.digests import DIGEST


def test_a_batch_is_written_with_what_is_known_of_it() -> None:
    observed = Configuration({Knob(EXECUTORS, "app"): 3})
    (record,) = Samples().new(State(history=(DIGEST,), observed=observed))
    assert (record.id, record.kind, record.at_s) == ("b-100.000-7", "batch", 100.0)
    assert record.text == "batch 7: 500 rows in 1.2 s"
    assert record.body == {
        "v": SCHEMA_VERSION,
        "rows": 500.0,
        "seconds": 1.25,
        "trigger_s": 2.0,
        "arrival_per_s": 250.0,
        "pending_rows": None,
        "span_s": 2.0,
        "batch": 7,
        "executors": 3,
        "workers": 3,
    }


def test_phases_state_and_watermark_are_written_where_they_are_known() -> None:
    states = {"1": StateSample("dedupe", rows=4e5), "2": StateSample("count", rows=6e5, memory_bytes=1e9)}
    digest = replace(DIGEST, watermark_gap_s=12.0, states=states, phases_s={"addBatch": 1.0, "walCommit": NAN})
    (record,) = Samples().new(State(history=(digest,)))
    assert (record.body["watermark_gap_s"], record.body["state_rows"]) == (12.0, 1e6)
    assert record.body["phases_s"] == {"addBatch": 1.0, "walCommit": None}
    assert "state_bytes" not in record.body


def test_what_arrived_at_each_source_is_written_where_there_are_several() -> None:
    several = replace(DIGEST, arrivals_per_s={"clicks": 200.0, "orders": NAN})
    (record,) = Samples().new(State(history=(several,)))
    assert record.body["arrivals_per_s"] == {"clicks": 200.0, "orders": None}
    (record,) = Samples().new(State(history=(replace(DIGEST, arrivals_per_s={"clicks": 250.0}),)))
    assert "arrivals_per_s" not in record.body


def test_each_batch_is_written_once_and_in_order() -> None:
    samples = Samples()
    later = [replace(DIGEST, at_s=100.0 + 2 * number, batch=7 + number) for number in range(4)]
    assert [r.body["batch"] for r in samples.new(State(history=tuple(later[:2])))] == [7, 8]
    assert samples.new(State(history=tuple(later[:2]))) == []
    assert [r.body["batch"] for r in samples.new(State(history=tuple(later)))] == [9, 10]


def test_nothing_was_seen_yet() -> None:
    assert Samples().new(State()) == []
