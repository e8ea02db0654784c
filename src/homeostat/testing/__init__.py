"""Helps you test your own plug-ins: builders of the views they see, and checks of their contracts.

The checks raise AssertionError and work with any test runner. `check_store` requires hypothesis.
"""

from __future__ import annotations

from homeostat.keyed_state.rehearsal import Rehearsal
from homeostat.testing.builders import blanked, described, instances, observations, view_of
from homeostat.testing.engine_contract import ENGINE_CHECKS, check_engine
from homeostat.testing.loop import Played, play
from homeostat.testing.plugins import check_detector, check_diagnoser, check_policy, check_resolver
from homeostat.testing.sample_views import sample_views
from homeostat.testing.store_contract import STORE_CHECKS, check_store, check_survives_kill

__all__ = [
    "ENGINE_CHECKS",
    "STORE_CHECKS",
    "Played",
    "Rehearsal",
    "blanked",
    "check_detector",
    "check_diagnoser",
    "check_engine",
    "check_policy",
    "check_resolver",
    "check_store",
    "check_survives_kill",
    "described",
    "instances",
    "observations",
    "play",
    "sample_views",
    "view_of",
]
