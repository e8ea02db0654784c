"""How a run is doing, in a few words."""

from __future__ import annotations

import pytest

from homeostat.core.records import BatchContent, Record
from homeostat.store.in_memory import MemoryStore
from homeostat.web.summary import GONE_S, by_application, info, is_simulated, summarise

NOW_S = 1.7e9


def store_with(pending_rows: float, at_s: float, run: str = "shop/words") -> MemoryStore:
    batch = BatchContent(
        rows=1_000, seconds=4, trigger_s=10, arrival_per_s=100, pending_rows=pending_rows, span_s=10, workers=4
    )
    store = MemoryStore()
    store.append(run, [Record.of("b-1", at_s, batch, "")])
    return store


@pytest.mark.parametrize(
    ("pending_rows", "at_s", "health", "reason"),
    [
        (100, NOW_S - 5, "healthy", "The query keeps up with the load."),
        (9_000, NOW_S - 5, "falling behind", "9,000 rows wait, more than arrive in two trigger intervals."),
        (100, NOW_S - 300, "unknown", "No new records for 300 s."),
        (100, NOW_S - GONE_S - 3_600, "not running", "No new records for 1 h."),
        (100, 600.0, "healthy", "The query keeps up with the load. (End of a simulated run.)"),
    ],
)
def test_health_has_a_reason(pending_rows: float, at_s: float, health: str, reason: str) -> None:
    store = store_with(pending_rows, at_s)
    (run,) = store.runs()
    summary = summarise(store, run, NOW_S)
    assert (summary.health, summary.reason) == (health, reason)
    assert is_simulated(run) is (at_s < 1e9)


def test_a_run_is_named_after_application_and_query_and_shows_its_latest_numbers() -> None:
    store = store_with(100, NOW_S)
    run = info(store, "shop/words")
    assert run is not None
    summary = summarise(store, run, NOW_S)
    assert (summary.application, summary.query) == ("shop", "words")
    assert (summary.latest["process_per_s"], summary.latest["workers"]) == (100, 4)
    assert (summary.rates, summary.arrivals) == ([100], [100])
    (shop,) = by_application([summary, summary])
    assert (shop.name, len(shop.queries)) == ("shop", 2)
    assert info(store, "shop/wrods") is None
