"""A log with living runs and a hostile one, and a real server over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.living import BATCHES, Living
from support.serving import OPERATE, Served, serving, write_hostile


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web") / "log.sqlite"


@pytest.fixture(scope="module")
def words(log: Path) -> Iterator[Living]:
    living = Living(log, "app/words")
    yield living
    living.close()


@pytest.fixture(scope="module")
def advised(log: Path, words: Living) -> Iterator[Living]:
    living = Living(log, "app/advised", mode="advise")
    yield living
    living.close()


@pytest.fixture(scope="module")
def served(log: Path, words: Living, advised: Living) -> Iterator[Served]:
    Living(log, "app/batches", mode="advise", scenario=BATCHES).close()
    write_hostile(log)
    with serving(log) as found:
        yield found


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as found:
        yield found


@pytest.fixture
def alice(served: Served) -> Iterator[httpx.Client]:
    with served.client(OPERATE) as found:
        yield found
