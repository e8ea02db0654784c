"""The address of a log decides which store opens it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from homeostat.core.errors import NoLogError
from homeostat.store.opening import identity_of_file, open_store
from homeostat.store.postgres import PostgresStore
from homeostat.store.sqlite import SqliteStore
from support.postgres import PostgresServer


def test_a_path_is_opened_with_sqlite(tmp_path: Path) -> None:
    with pytest.raises(NoLogError):
        open_store(tmp_path / "log", read_only=True)
    with closing(open_store(tmp_path / "log")) as store:
        assert isinstance(store, SqliteStore)
    assert identity_of_file(tmp_path / "log") not in (None, identity_of_file(tmp_path))
    assert identity_of_file(tmp_path / "nowhere") is None


def test_an_address_is_opened_with_postgresql(postgres: PostgresServer) -> None:
    address = postgres.new_address()
    with pytest.raises(NoLogError):
        open_store(address, guest=True)
    with closing(open_store(address)) as store:
        assert isinstance(store, PostgresStore)
    assert identity_of_file(address) is not None
