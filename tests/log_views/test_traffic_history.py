"""The rates at which rows arrived, read from the log."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.records import BatchContent, Record
from homeostat.log_views.traffic_history import apart_json, arrival_history, as_json, forecast_apart, traffic
from homeostat.store.in_memory import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    log = MemoryStore()
    for number in range(400):
        wave = 1_000.0 + 500.0 * np.sin(number / 60 * 2 * np.pi)
        content = BatchContent(
            rows=1,
            seconds=1,
            trigger_s=60,
            arrival_per_s=wave + 100.0,
            pending_rows=0,
            span_s=60,
            arrivals_per_s={"clicks": wave, "orders": 100.0} if number > 100 else {},
        )
        log.append("run", [Record.of(f"b-{number}", 60.0 * number, content, "")])
    return log


def test_each_batch_stands_for_its_middle_and_an_unknown_source_is_unknown(store: MemoryStore) -> None:
    history = arrival_history(store, "run")
    assert history.times_s[0] == 60.0 * 399 - 30.0, "the newest first"
    assert list(history.sources) == ["clicks", "orders"]
    assert np.isnan(history.sources["clicks"][-1])
    assert len(traffic(store, "run", most=10)[1]) == 10


def test_each_source_is_forecast_by_itself(store: MemoryStore) -> None:
    history = arrival_history(store, "run", most=299)
    forecasts = forecast_apart(history.times_s, history.sources, float("inf"), 900.0)
    assert [(each["name"], each["usable"]) for each in apart_json(forecasts)] == [("clicks", True), ("orders", False)]
    answer = as_json(forecasts["clicks"], [1_234.0])
    assert answer["forecast"][0]["came"] == 1_234.0
    assert np.isnan(answer["forecast"][1]["came"])
