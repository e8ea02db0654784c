"""The checks catch a store that breaks its contract."""

from __future__ import annotations

import pytest

from homeostat.core.records import Record
from homeostat.store.in_memory import MemoryStore
from homeostat.testing import check_store


def test_a_store_that_forgets_is_found_out() -> None:
    class Forgetful(MemoryStore):
        def open_intents(self, run: str) -> list[Record]:
            return []

    with pytest.raises(AssertionError):
        check_store(Forgetful)
