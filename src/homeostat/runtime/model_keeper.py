"""Keeps the newest performance model of a run in its log, where `whatif`, `plan` and the dashboard read it."""

from __future__ import annotations

import math

from homeostat.core.loop_state import State
from homeostat.core.plugins import look
from homeostat.core.policy_definition import Policy
from homeostat.models.application_model import application_model
from homeostat.models.model_json import MODEL_KEY, to_json
from homeostat.store.protocol import Store

# A fit takes some tens of milliseconds and the model changes slowly: once a minute costs the loop almost nothing.
EVERY_S = 60.0


class ModelKeeper:
    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._next_s = -math.inf

    def look(self, policy: Policy, state: State, now_s: float) -> None:
        """Fit and save a model, at most once a minute and only while no change is under way."""
        if now_s < self._next_s or not state.window or any(action.applied_s is None for action in state.active):
            return
        model = application_model(look(policy, state, now_s))
        if model is not None:
            self._next_s = now_s + EVERY_S
            self._store.save_state(self._run, MODEL_KEY, to_json(model))
