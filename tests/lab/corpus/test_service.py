"""The service answers when it was asked to, and later when it is slow."""

from __future__ import annotations

import socket

from homeostat.lab.corpus.row_work import REQUEST
from homeostat.lab.corpus.service import Service


def test_each_request_is_answered_also_by_a_slow_service() -> None:
    with Service() as service:
        with socket.create_connection(("127.0.0.1", service.port)) as first:
            first.sendall(REQUEST.pack(1.0))
            assert first.recv(1) == b"\1"
            service.slowness = 3.0
            first.sendall(REQUEST.pack(1.0))
            assert first.recv(1) == b"\1"
        with socket.create_connection(("127.0.0.1", service.port)) as second:
            second.sendall(REQUEST.pack(0.0))
            assert second.recv(1) == b"\1"
