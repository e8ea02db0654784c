from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.core.records import HOUR, MINUTE, BatchContent, FlowContent, Record, content_of
from homeostat.store.in_memory import MemoryStore
from homeostat.store.rollups import history, period_end_s, summaries
from support.old_logs import BATCH_S, DAY_S, RUN, START_S, batch, batches


def flow(record: Record) -> FlowContent:
    content = record.content
    assert isinstance(content, FlowContent)
    return content


def test_a_moment_at_the_end_of_a_minute_belongs_to_it() -> None:
    assert [period_end_s(at_s, 60.0) for at_s in (0.0, 0.1, 60.0, 60.1)] == [0.0, 60.0, 60.0, 120.0]


def test_a_minute_adds_rows_up_averages_rates_by_time_and_takes_the_largest_of_the_rest() -> None:
    first = BatchContent(100, 3.0, 10.0, 10.0, 5.0, 10.0, batch=1, executors=2, workers=2, phases_s={"addBatch": 2.0})
    second = BatchContent(400, 9.0, 10.0, 40.0, math.nan, 30.0, batch=2, executors=4, workers=4, state_rows=7.0)
    records = [Record.of("b-1", 20.0, first, ""), Record.of("b-2", 50.0, second, "")]
    (minute,) = summaries(MINUTE, records)
    content = flow(minute)
    assert (minute.kind, minute.at_s, minute.id) == (MINUTE, 60.0, "minute-60")
    assert (content.rows, content.span_s, content.batches, content.batch) == (500, 40.0, 2, 2)
    assert content.arrival_per_s == pytest.approx((10 * 10 + 40 * 30) / 40)
    assert (content.seconds, content.pending_rows, content.state_rows, content.executors) == (9.0, 5.0, 7.0, 4)
    assert content.workers == round((2 * 10 + 4 * 30) / 40)
    assert dict(content.phases_s) == {"addBatch": 2.0}
    assert content_of(MINUTE, minute.body) == content


def test_an_hour_made_of_minutes_is_the_hour_made_of_batches() -> None:
    records = batches(1 / 24)
    (of_batches,) = summaries(HOUR, records)
    (of_minutes,) = summaries(HOUR, summaries(MINUTE, records))
    assert flow(of_minutes).batches == flow(of_batches).batches == len(records)
    assert flow(of_minutes).rows == pytest.approx(flow(of_batches).rows)
    assert flow(of_minutes).arrival_per_s == pytest.approx(flow(of_batches).arrival_per_s, abs=1e-5)
    assert flow(of_minutes).arrivals_per_s == pytest.approx(flow(of_batches).arrivals_per_s, abs=1e-5)
    assert flow(of_minutes).seconds == flow(of_batches).seconds


def test_a_batch_longer_than_a_minute_is_the_minute_in_which_it_ended() -> None:
    long = Record.of("b-1", 400.0, BatchContent(9, 300.0, 300.0, 3.0, 0.0, 300.0), "")
    (minute,) = summaries(MINUTE, [long])
    assert (minute.at_s, flow(minute).span_s) == (420.0, 300.0)


def test_the_history_of_a_log_without_summaries_is_its_batches() -> None:
    store = MemoryStore()
    records = batches(0.1)
    store.append(RUN, records)
    assert history(store, RUN) == records
    assert history(store, RUN, 600.0) == [record for record in records if record.at_s >= records[-1].at_s - 600.0]
    assert history(store, RUN, most=5) == records[-5:]
    assert history(store, "nothing") == []


@pytest.mark.parametrize("finest", [False, True])
@pytest.mark.parametrize("last_s", [3_600.0, 2 * DAY_S, math.inf])
def test_the_history_counts_every_batch_once_in_whatever_form_it_is(last_s: float, finest: bool) -> None:
    """Batches of the last half day, minutes of the last day, hours of all four days."""
    store = MemoryStore()
    everything = batches(4.0)
    minutes = summaries(MINUTE, everything)
    end_s = START_S + 4 * DAY_S
    store.append(RUN, summaries(HOUR, minutes)[:-1])
    store.append(RUN, [minute for minute in minutes if minute.at_s > end_s - DAY_S][:-2])
    store.append(RUN, [each for each in everything if each.at_s > end_s - DAY_S / 2])
    records = history(store, RUN, last_s, finest=finest)
    assert all(record.kind == "batch" for record in records)
    covered_s = sum(flow(record).span_s for record in records)
    assert covered_s == pytest.approx(min(last_s, 4 * DAY_S), abs=3_600.0 + BATCH_S)
    ends = [record.at_s for record in records]
    assert ends == sorted(set(ends))
    counts = {flow(record).batches for record in records}
    assert counts == ({1} if last_s < 2 * DAY_S else {1, 30})


def test_a_long_window_is_read_from_the_summaries() -> None:
    store = MemoryStore()
    everything = batches(2.0)
    store.append(RUN, everything)
    store.append(RUN, [replace(minute, text="summary") for minute in summaries(MINUTE, everything)[:-5]])
    summarised = [record for record in history(store, RUN) if record.text == "summary"]
    assert len(summarised) == len(everything) - 5
    assert history(store, RUN, finest=True) == everything


def test_a_batch_with_unknown_values_leaves_the_others_known() -> None:
    nothing = BatchContent(math.nan, math.nan, math.nan, math.nan, math.nan, 0.0)
    (minute,) = summaries(MINUTE, [Record.of("b-0", START_S + 1, nothing, ""), batch(1, START_S + 2)])
    assert (flow(minute).rows, flow(minute).arrival_per_s) == (301.0, 11.0)
    (unknown,) = summaries(MINUTE, [Record.of("b-0", START_S + 1, nothing, "")])
    assert math.isnan(flow(unknown).rows)
    assert flow(unknown).workers == 0
