"""Both stores keep the contract of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from homeostat.store.in_memory import MemoryStore
from homeostat.store.protocol import Store
from homeostat.store.sqlite import SqliteStore
from homeostat.testing import STORE_CHECKS

StoreFactory = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
    numbers = count()
    if request.param == "memory":
        return MemoryStore
    return lambda: SqliteStore(tmp_path / f"{next(numbers)}.sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_store_keeps_its_contract(factory: StoreFactory, check: Callable[[StoreFactory], None]) -> None:
    check(factory)
