"""Slow and idle clients, over a real server."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from homeostat.web.pages import STATIC
from support.serving import READ, Served, serving

REQUEST = b"GET /static/uPlot.iife.min.js HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
# More than the system keeps in its buffers between two processes of one machine (some 4 MB).
MANY = 400
FILE_BYTES = (STATIC / "uPlot.iife.min.js").stat().st_size


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ("", b""),
        ("GET /index.json HTT", b""),
        ("GET /index.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\nGET", b"HTTP/1.1 200 OK"),
        ("POST /session HTTP/1.1\r\nhost: 127.0.0.1\r\n{own}content-length: 9\r\n\r\nnext", b"HTTP/1.1 408"),
    ],
)
def test_who_never_finishes_asking_is_let_go(
    served: Served, monkeypatch: pytest.MonkeyPatch, sent: str, answered: bytes
) -> None:
    monkeypatch.setattr("homeostat.web.connections.LOOK_S", 0.05)
    monkeypatch.setattr("homeostat.web.connections.IDLE_LIMIT_S", 0.2)
    monkeypatch.setattr("homeostat.web.app.BODY_WITHIN_S", 0.2)
    where = ("127.0.0.1", int(served.url.rpartition(":")[2]))
    with socket.create_connection(where, timeout=30.0) as silent:
        silent.sendall(sent.format(own="origin: http://127.0.0.1\r\n").encode())
        received = b"".join(iter(lambda: silent.recv(65_536), b""))
    assert received.startswith(answered)
    assert bool(received) == bool(answered)


def test_silent_connections_shut_nobody_out(served: Served, client: httpx.Client) -> None:
    where = ("127.0.0.1", int(served.url.rpartition(":")[2]))
    with ExitStack() as open_:
        for _ in range(300):
            open_.enter_context(socket.create_connection(where))
        assert client.get("/index.json").status_code == 200


def slow_reader(url: str) -> socket.socket:
    """Asks for much and reads nothing."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
    reader.settimeout(30.0)
    reader.connect(("127.0.0.1", int(url.rpartition(":")[2])))
    reader.sendall(REQUEST * MANY)
    return reader


def received_bytes(reader: socket.socket) -> int:
    received = 0
    with suppress(ConnectionResetError):
        while chunk := reader.recv(1 << 20):
            received += len(chunk)
    return received


def test_who_does_not_read_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.web.connections.LOOK_S", 0.05)
    monkeypatch.setattr("homeostat.web.connections.SLOW_LIMIT_S", 0.3)
    with serving(tmp_path / "log.sqlite", local=False) as served, slow_reader(served.url) as reader:
        until(lambda: served.connections > 0)
        until(lambda: served.connections == 0)
        assert received_bytes(reader) < MANY * FILE_BYTES


def test_slow_readers_shut_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.web.connections.LOOK_S", 0.05)
    monkeypatch.setattr("homeostat.web.connections.MOST_CONNECTIONS", 8)
    with serving(tmp_path / "log.sqlite", local=False, limit=12) as served, ExitStack() as open_:
        for _ in range(16):
            open_.enter_context(slow_reader(served.url))
        # Slow readers are cut off when the server looks next. Until then a request may be refused and is sent again.
        with served.client(READ) as client:
            until(lambda: is_answered(client))


def is_answered(client: httpx.Client) -> bool:
    try:
        return client.get("/openapi.json").status_code == 200
    except httpx.TransportError:
        return False


def until(condition: Callable[[], bool]) -> None:
    assert any(condition() for _ in repeat_for(seconds=60.0)), "it was waited for in vain"


def repeat_for(seconds: float) -> Iterator[None]:
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        yield
        time.sleep(0.05)


def test_who_reads_and_waits_for_news_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.web.connections.LOOK_S", 0.05)
    monkeypatch.setattr("homeostat.web.connections.SLOW_LIMIT_S", 0.1)
    monkeypatch.setattr("homeostat.web.connections.IDLE_LIMIT_S", 0.1)
    monkeypatch.setattr("homeostat.web.feed.KEEP_ALIVE_S", 0.5)
    with (
        serving(tmp_path / "log.sqlite") as served,
        served.client() as client,
        client.stream("GET", "/events") as stream,
    ):
        lines = stream.iter_lines()
        assert sum(1 for _, line in zip(range(12), lines, strict=False) if "still here" in line) >= 2


def test_a_client_has_its_share_of_the_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.web.connections.MOST_PER_CLIENT", 2)
    monkeypatch.setattr("homeostat.web.connections.IdleClosingProtocol._shared", lambda self, host: False)
    with serving(tmp_path / "log.sqlite") as served, ExitStack() as open_:
        where = ("127.0.0.1", int(served.url.rpartition(":")[2]))
        for _ in range(5):
            open_.enter_context(socket.create_connection(where, timeout=30.0))
        with served.client() as client:
            assert client.get("/index.json").status_code == 200
            until(lambda: served.connections <= 2)
