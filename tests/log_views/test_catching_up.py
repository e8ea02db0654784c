"""When a query will have caught up, from what its manager wrote into the log."""

from __future__ import annotations

import math

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB, Patch
from homeostat.core.record_json import JSON
from homeostat.core.records import BatchContent, Record
from homeostat.log_views.catching_up import catching_up, catching_up_sentence
from homeostat.models.model_json import MODEL_KEY, to_json
from homeostat.store.in_memory import MemoryStore
from homeostat.store.present import PRESENT, Present
from support.batch_plans import batches

MODEL = batches()  # an executor processes 1,000 rows/s


def log(
    pending_rows: float, *, arrivals: tuple[float, ...] = (2_000.0,), present: Present | None = None
) -> MemoryStore:
    store = MemoryStore()
    for number, per_s in enumerate(arrivals):
        content = BatchContent(
            rows=1, seconds=10, trigger_s=10, arrival_per_s=per_s, pending_rows=pending_rows, span_s=10
        )
        store.append("app/words", [Record.of(f"b-{number}", 10.0 * number, content, "")])
    store.save_state("app/words", MODEL_KEY, to_json(MODEL))
    if present is not None:
        store.save_state("app/words", PRESENT, present.to_json())
    return store


def test_the_rows_of_the_newest_batch_and_the_rate_of_the_latest_ones() -> None:
    catch_up = catching_up(log(620_000.0, arrivals=(1_900.0, 2_100.0)), "app/words")
    assert catch_up is not None
    assert (catch_up.backlog.at_s, catch_up.backlog.rows, catch_up.backlog.arrival_per_s) == (10.0, 620_000.0, 2_000.0)
    assert (
        catching_up_sentence(catch_up) == "620,000 rows wait: caught up at 0:10:22 with 3 executors, at 0:05:19 with 4"
    )


def test_the_executors_of_now_count_and_not_those_that_the_model_was_fitted_with() -> None:
    now = MODEL.configuration.patched(Patch({EXECUTORS_KNOB: 5}))
    ordered = {str(EXECUTORS_KNOB): 8.0}
    catch_up = catching_up(log(620_000.0, present=Present(observed=now.as_json(), desired=ordered)), "app/words")
    assert catch_up is not None
    assert catch_up.present.instances == 5
    assert [each.instances for each in catch_up.others] == [8]


@pytest.mark.parametrize("pending_rows", [0.0, 20_000.0, math.nan])
def test_a_query_that_is_not_behind_has_no_such_time(pending_rows: float) -> None:
    assert catching_up(log(pending_rows), "app/words") is None
    assert catching_up_sentence(None) == ""


@pytest.mark.parametrize("model", [{"format": 0}, "nonsense", {"format": 1}])
def test_without_a_model_that_can_be_read_nothing_is_predicted(model: JSON) -> None:
    store = log(620_000.0)
    store.save_state("app/words", MODEL_KEY, model)
    assert catching_up(store, "app/words") is None
    assert catching_up(MemoryStore(), "app/words") is None
