"""`homeostat watch` where there is nothing to watch; on a real application it is tested with Spark."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from homeostat.lab.rest_proxy import Behaviour, Proxy

Homeostat = Callable[..., Any]


def one_line(result: Any, code: int, *words: str) -> None:
    assert (result.code, result.out) == (code, "")
    (line,) = result.err.strip().splitlines()
    assert line.startswith("homeostat: ")
    for word in words:
        assert word in line


@contextmanager
def web_server(body: str, status: int = 200) -> Iterator[str]:
    """A server that is no Spark application. It gives the same answer to every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Nothing: it would be on the standard error of the command."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


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


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ("<!DOCTYPE html><title>Wiki</title>", 200, "the answer is not JSON"),
        ("<h1>Not Found</h1>", 404, "the answer has status 404"),
        ('{"status": "UP"}', 200, "unexpected answer (TypeError('expected a list'))"),
        ('[{"id": 7}]', 200, "unexpected answer (KeyError('name'))"),
        ('[{"id": 7, "name": "x"}]', 200, "unexpected answer (TypeError("),
        ("[]", 200, "this address has no running application"),
    ],
)
def test_a_page_that_is_no_spark_application_is_one_line(
    homeostat: Homeostat, body: str, status: int, why: str
) -> None:
    before = threading.active_count()
    with web_server(body, status) as url:
        one_line(
            homeostat("watch", url),
            1,
            f"{url}: no Spark application answers at this address: {why}",
            "http://driver:4040",
        )
    assert threading.active_count() == before


def test_an_address_that_says_nothing_is_given_up(homeostat: Homeostat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.cli.watch.FIRST_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        one_line(homeostat("watch", url), 1, f"{url}: no Spark application answers", "no answer within 0.3 s")


def test_an_address_that_answers_byte_by_byte_is_given_up_too(
    homeostat: Homeostat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homeostat.cli.watch.FIRST_TIMEOUT_S", 0.5)
    monkeypatch.setattr("homeostat.cli.watch.MORE_S", 0.5)
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nServer: ")
                while not ended.wait(0.05):
                    connection.sendall(b"x")

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        one_line(
            homeostat("watch", url),
            1,
            f"{url}: no Spark application answers",
            "no complete answer within 1 s",
        )
        ended.set()
        thread.join()


@pytest.mark.parametrize("url", ["", "driver:4040", "ftp://driver"])
def test_what_is_no_address_is_refused(homeostat: Homeostat, url: str) -> None:
    one_line(homeostat("watch", url), 2, "is not a URL")


def test_an_unknown_time_is_refused(homeostat: Homeostat) -> None:
    one_line(homeostat("watch", "http://127.0.0.1:1", "--for", "soon"), 2, "--for")


def test_a_directory_without_an_event_log_is_refused(homeostat: Homeostat, tmp_path: Path) -> None:
    one_line(homeostat("watch", "http://127.0.0.1:1", "--event-log", tmp_path / "none"), 2, "none")


def test_what_another_machine_says_reaches_no_terminal_raw(
    homeostat: Homeostat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homeostat.cli.watch._follow", lambda *_: None)
    names = {"id": "app\x1b[2J-1", "name": "words", "spark": "4.0\x1b]0;taken over\x07"}
    with json_server({"applications": [names], "version": names}) as url:
        result = homeostat("watch", url, "--for", "1s")
    assert result.code == 0
    assert r"4.0\x1b]0;taken over\x07" in result.out
    assert not {"\x1b", "\x07"} & {*result.out, *result.err}


@contextmanager
def json_server(answers: dict[str, Any]) -> Iterator[str]:
    """Answers by the last part of the path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.partition("?")[0].rpartition("/")[2]
            self.send_response(200 if name in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(name)).encode())

        def log_message(self, *_: object) -> None:
            """Nothing: it would be on the standard error of the command."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
