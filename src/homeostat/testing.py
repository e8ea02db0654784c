"""Checks that an implementation of one of Homeostat's protocols keeps its contract, for tests of your own.

They raise AssertionError and need hypothesis, but no particular test runner.
"""

from __future__ import annotations

from homeostat.store.contract import STORE_CHECKS, check_store, check_survives_kill

__all__ = ["STORE_CHECKS", "check_store", "check_survives_kill"]
