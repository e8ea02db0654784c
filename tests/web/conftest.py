"""A log with living runs and a hostile one, and a real server over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from support.living import BATCHES, Living
from support.serving import OPERATE, Served, serving, write_hostile


class World(NamedTuple):
    log: Path
    words: Living
    advised: Living
    served: Served


@contextmanager
def living_world(log: Path) -> Iterator[World]:
    words = Living(log, "app/words")
    advised = Living(log, "app/advised", mode="advise")
    Living(log, "app/batches", mode="advise", scenario=BATCHES).close()
    write_hostile(log)
    with serving(log) as served:
        yield World(log, words, advised, served)
    words.close()
    advised.close()


@pytest.fixture(scope="session")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with living_world(tmp_path_factory.mktemp("web") / "log.sqlite") as world:
        yield world


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Files that only read share one log; those marked `changes_runs` have one each."""
    if request.node.get_closest_marker("changes_runs") is None:
        shared = request.getfixturevalue("shared_world")
        shared.words.catch_up()
        shared.advised.catch_up()
        yield shared
        return
    with living_world(tmp_path_factory.mktemp("web") / "log.sqlite") as own:
        yield own


@pytest.fixture(scope="module")
def log(world: World) -> Path:
    return world.log


@pytest.fixture(scope="module")
def words(world: World) -> Living:
    return world.words


@pytest.fixture(scope="module")
def advised(world: World) -> Living:
    return world.advised


@pytest.fixture(scope="module")
def served(world: World) -> Served:
    return world.served


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


@pytest.fixture
def alice(served: Served) -> Iterator[httpx.Client]:
    with served.client(OPERATE) as client:
        yield client
