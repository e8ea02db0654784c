"""When a query will have caught up, from its log: its newest batches and the model that its manager keeps there."""

from __future__ import annotations

import numpy as np

from homeostat.core.configuration import Configuration, Patch
from homeostat.core.errors import StoreError
from homeostat.core.observation import NAN
from homeostat.core.records import BATCH, BatchContent, with_content
from homeostat.core.wording import rows_waiting
from homeostat.models.batch_model import RECENT
from homeostat.models.caught_up import Backlog, CatchUp, when_caught_up
from homeostat.models.model_json import MODEL_KEY, from_json
from homeostat.store.present import load_present
from homeostat.store.protocol import Store


def catching_up(store: Store, run: str) -> CatchUp | None:
    """Return when the rows that wait will have been processed; None if none wait, or if that cannot be predicted."""
    batches = store.records(run, kinds=(BATCH,), limit=RECENT, newest_first=True)[::-1]
    contents = list(with_content(batches, BatchContent))
    if not contents or not contents[-1][1].pending_rows > 0:
        return None
    try:
        value = store.load_state(run, MODEL_KEY)
        model = None if value is None else from_json(value)
    except (StoreError, ValueError, KeyError, TypeError, AttributeError):  # as another program wrote it
        return None
    if model is None:
        return None
    present = load_present(store, run)
    now = Configuration.from_json(present.observed) if present.observed else model.configuration
    change = now.effective_part(Patch(Configuration.from_json(present.desired).values))
    record, newest = contents[-1]
    arrivals = np.array([batch.arrival_per_s for _, batch in contents])
    known_rates = arrivals[np.isfinite(arrivals)]
    backlog = Backlog(
        record.at_s, newest.pending_rows, float(known_rates.mean()) if len(known_rates) else NAN, newest.pending_at_most
    )
    return when_caught_up(model, backlog, now, ordered=now.patched(change) if change else None)


def catching_up_sentence(catch_up: CatchUp | None) -> str:
    """`12,400 rows wait: caught up at 14:51:40 with 4 executors, at 14:32:10 with 6`; empty if there is no backlog."""
    if catch_up is None:
        return ""
    return f"{rows_waiting(catch_up.backlog.rows, catch_up.backlog.at_most)}: {catch_up.sentence}"
