"""The model in the log is what the run's manager wrote there; a run without one is refused."""

from __future__ import annotations

import pytest

from homeostat.core.errors import ConfigError
from homeostat.core.record_json import JSON
from homeostat.log_views.stored_model import from_store
from homeostat.models.model_json import MODEL_KEY, to_json
from homeostat.store.in_memory import MemoryStore
from support.models import watched_model


def test_the_stored_model_is_read_back() -> None:
    store, model = MemoryStore(), watched_model()
    store.save_state("run", MODEL_KEY, to_json(model))
    stored = from_store(store, "run", "log.sqlite")
    assert stored.topology.names == model.topology.names
    assert stored.configuration == model.configuration
    before, after = (each.predict(each.configuration, 150.0).saturation_per_s.middle for each in (model, stored))
    assert after == pytest.approx(before, rel=1e-4)


@pytest.mark.parametrize("value", [None, {"format": 0}])
def test_a_run_without_a_model_is_refused(value: JSON) -> None:
    store = MemoryStore()
    if value is not None:
        store.save_state("run", MODEL_KEY, value)
    with pytest.raises(ConfigError) as refused:
        from_store(store, "run", "log.sqlite")
    assert refused.value.line == (
        "log.sqlite: run 'run' has no model yet (wait until its manager has observed batches for a few minutes)"
    )
