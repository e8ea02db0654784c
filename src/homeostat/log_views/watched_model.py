"""The performance model that can be fitted to the observations of a loop that does not act."""

from __future__ import annotations

from homeostat.core.errors import ConfigError
from homeostat.core.loop_state import State
from homeostat.core.plugins import look
from homeostat.core.policy_definition import Policy
from homeostat.models.application_model import ApplicationModel, application_model

# Observes and never acts. An hour is enough batches for a fit, and short enough to leave out how the load was before.
WATCHING = Policy("watching", window_s=3600.0)


def model_of(state: State, now_s: float, where: str) -> ApplicationModel:
    model = application_model(look(WATCHING, state, now_s))
    if model is None:
        raise ConfigError(
            "has too few batches with rows to fit a model to", where=where, fix="use a longer recording or scenario"
        )
    return model
