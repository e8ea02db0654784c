"""The client against servers that misbehave; what Spark itself answers is tested with the sensors."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.sensor_error import SensorError

LIMIT_S = 60.0  # only makes a broken test end
SHORT_LIMIT_S = 0.3  # for answers that never end

CALLS: dict[str, Callable[[RestClient], object]] = {
    "version": RestClient.version,
    "applications": RestClient.applications,
    "executors": RestClient.executors,
    "jobs": RestClient.jobs,
    "job": lambda client: client.job(1),
    "stage": lambda client: client.stage(1),
    "stage with tasks": lambda client: client.stage_with_tasks(1),
}


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


SENT = {
    "nothing": b"",
    "no HTTP": b"\x00\xff{[not HTTP",
    "no JSON": answer(b"\x00\xff{[not JSON"),
    "an object without fields": answer(b"{}"),
    "a list of numbers": answer(b"[1, 2]"),
    "text": answer(b'"text"'),
    "null": answer(b"null"),
    "endless nesting": answer(b"[" * 100_000),
    "a list with wrong fields": answer(b'[{"jobId": "x"}]'),
    "an object with few fields": answer(b'{"jobId": 1}'),
    "a server error": answer(b"broken", "500 Server Error"),
    "a redirect to nowhere": answer(b"", "302 Found"),
    "half an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n[{",
    "broken compression": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
}


@contextmanager
def server(*pieces: bytes, keep_open: bool = False) -> Iterator[str]:
    """Sends the same bytes on every connection, then ends it, or says no more."""
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()
    connections: list[socket.socket] = []

    def serve() -> None:
        while not ended.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connections.append(connection)
            try:
                connection.recv(65536)
                for piece in pieces:
                    connection.sendall(piece)
            except OSError:
                pass
            if not keep_open:
                connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()
        for connection in connections:
            connection.close()


def client_of(url: str, limit_s: float = LIMIT_S) -> RestClient:
    return RestClient(url, "app-1", first_timeout_s=limit_s, timeout_s=limit_s)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("sent", SENT.values(), ids=SENT.keys())
def test_whatever_comes_back_is_one_error(sent: bytes, call: Callable[[RestClient], object]) -> None:
    with server(sent) as url:
        client = client_of(url)
        with pytest.raises(SensorError, match=url):
            call(client)
        client.close()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_silence_ends_with_the_time_limit(call: Callable[[RestClient], object]) -> None:
    with server(keep_open=True) as url:
        client = client_of(url, SHORT_LIMIT_S)
        with pytest.raises(SensorError, match="no answer within"):
            call(client)
        client.close()


def test_an_answer_that_trickles_in_ends_with_the_time_limit_too() -> None:
    """Each piece comes in time; all of them together do not."""
    ended = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def trickle() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n[")
            while not ended.wait(0.05):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

    thread = threading.Thread(target=trickle, daemon=True)
    thread.start()
    client = client_of(f"http://127.0.0.1:{listening.getsockname()[1]}", SHORT_LIMIT_S)
    with pytest.raises(SensorError) as raised:
        client.executors()
    assert raised.value.kind == "late"
    ended.set()
    client.close()
    thread.join()
    listening.close()


def test_nobody_listening_is_an_error_of_its_own_kind() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    client = client_of(url)
    with pytest.raises(SensorError) as raised:
        client.executors()
    assert raised.value.kind == "ConnectError"
    client.close()


@pytest.mark.parametrize("url", ["", "not a url", "http://", "ftp://127.0.0.1/", "http://[::1"])
def test_an_address_that_is_none_is_an_error_too(url: str) -> None:
    client = client_of(url)
    with pytest.raises(SensorError):
        client.executors()
    client.close()


def test_a_job_or_stage_that_does_not_exist_is_no_error() -> None:
    with server(answer(b"unknown job: 7", "404 Not Found")) as url:
        client = client_of(url)
        assert client.job(7) is None
        assert client.stage(7) == []
        with pytest.raises(SensorError, match="status 404"):
            client.executors()
        client.close()


def test_several_applications_behind_one_address_must_be_are_distinguishable() -> None:
    body = b'[{"id": "a", "name": "x", "attempts": []}, {"id": "b", "name": "y", "attempts": []}]'
    with server(answer(body)) as url:
        client = RestClient(url, first_timeout_s=LIMIT_S)
        with pytest.raises(SensorError, match="2 applications"):
            client.executors()
        client.close()
