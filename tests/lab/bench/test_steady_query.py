from __future__ import annotations

from homeostat.core.configuration import EXECUTORS_KNOB, Configuration
from homeostat.core.events import Apply, Observed, Receipt
from homeostat.lab.bench.steady_query import DAY_S, SteadyQuery


def test_a_batch_takes_what_arrived_and_more_executors_take_more() -> None:
    query = SteadyQuery(1, 0.0)
    (first,) = query.wait(60.0)
    assert isinstance(first, Observed)
    flow = first.observation.flows[0]
    assert first.observation.span_s == 60.0
    assert flow.rows + flow.pending_rows == flow.arrival_per_s * 60.0
    query.apply(Apply("a-1", 60.0, Configuration({EXECUTORS_KNOB: 8}), (), 60.0))
    second, receipt = query.wait(120.0)
    assert isinstance(second, Observed)
    assert isinstance(receipt, Receipt)
    assert receipt.configuration.get(EXECUTORS_KNOB, 0) == 8
    assert len(second.observation.workers.ids) == 8


def test_the_load_has_a_daily_wave_and_runs_begin_anew() -> None:
    query = SteadyQuery(1, 0.0)
    rates = [query.load_per_s(DAY_S * part / 8) for part in range(8)]
    assert max(rates) > 3 * min(rates)
    runs = {query.wait(DAY_S * part / 8)[0].observation.run for part in range(1, 8)}  # type: ignore[union-attr]
    assert len(runs) == 4
