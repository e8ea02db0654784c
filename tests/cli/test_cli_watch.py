"""`homeostat watch` where there is nothing to watch; on a real application it is tested with Spark."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homeostat.spark.proxy import Behaviour, Proxy

Homeostat = Callable[..., Any]


def one_line(ran: Any, code: int, *words: str) -> None:
    assert (ran.code, ran.out) == (code, "")
    (line,) = ran.err.strip().splitlines()
    assert line.startswith("homeostat: ")
    for word in words:
        assert word in line


def test_an_address_without_an_application_is_one_line(homeostat: Homeostat) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    before = threading.active_count()
    one_line(homeostat("watch", url), 1, url, "refused", "http://driver:4040")
    assert threading.active_count() == before


@pytest.mark.parametrize("behaviour", [Behaviour.GARBAGE, Behaviour.HALF, Behaviour.ERROR, Behaviour.FAITHFUL])
def test_an_address_that_answers_something_else_is_one_line(homeostat: Homeostat, behaviour: Behaviour) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with Proxy(nobody) as proxy:
        proxy.behave(behaviour)
        one_line(homeostat("watch", proxy.url), 1, proxy.url, "http://driver:4040")


@pytest.mark.parametrize("url", ["", "driver:4040", "ftp://driver"])
def test_what_is_no_address_is_refused(homeostat: Homeostat, url: str) -> None:
    one_line(homeostat("watch", url), 2, "no address")


def test_an_unknown_time_is_refused(homeostat: Homeostat) -> None:
    one_line(homeostat("watch", "http://127.0.0.1:1", "--for", "soon"), 2, "--for")


def test_a_directory_without_an_event_log_is_refused(homeostat: Homeostat, tmp_path: Path) -> None:
    one_line(homeostat("watch", "http://127.0.0.1:1", "--event-log", tmp_path / "none"), 2, "none")
