"""The performance model that a run's manager keeps in the log."""

from __future__ import annotations

from homeostat.core.errors import ConfigError
from homeostat.models.application_model import ApplicationModel
from homeostat.models.model_json import MODEL_KEY, from_json
from homeostat.store.protocol import Store


def from_store(store: Store, run: str, where: str) -> ApplicationModel:
    value = store.load_state(run, MODEL_KEY)
    model = None if value is None else from_json(value)
    if model is None:
        raise ConfigError(
            f"run {run!r} has no model yet",
            where=where,
            fix="wait until its manager has observed batches for a few minutes",
        )
    return model
