"""Slow and idle clients, over a real server."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import httpx
import pytest

from support.serving import Served


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
