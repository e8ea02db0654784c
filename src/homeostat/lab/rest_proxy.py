"""A proxy for Spark's REST API that fails on demand, for tests and demonstrations."""

from __future__ import annotations

import http.client
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

UPSTREAM_LIMIT_S = 60.0  # a choice: far longer than Spark takes on a busy machine
GARBAGE = b"\x00\xff{[not JSON"


class Behaviour(Enum):
    """How the proxy answers, starting with the next request."""

    FAITHFUL = "passes on Spark's answer"
    LATE = "passes on Spark's answer after a delay"
    GARBAGE = "answers at once with bytes that are not JSON"
    HALF = "sends the first half of Spark's answer and closes the connection"
    ERROR = "answers with status 500"
    SILENT = "does not answer and keeps the connection open"


class Proxy:
    """Listens on a loopback address, by default on a free port, and answers requests for `target` by its behaviour.

    A request that waits when the behaviour changes is answered by the new one, so that none hangs after SILENT.
    """

    def __init__(self, target: str, *, host: str = "127.0.0.1", port: int = 0) -> None:
        address = urlsplit(target)
        self._host, self._port = address.hostname or "", address.port or 80
        self._changed = Condition()
        self._behaviour = Behaviour.FAITHFUL
        self._delay_s = 0.0
        self._closed = False
        self.requests = 0
        self._server = _Server(self, host, port)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="rest-proxy")
        self._thread.daemon = True

    @property
    def url(self) -> str:
        return f"http://{self._server.server_name}:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def behave(self, behaviour: Behaviour, delay_s: float = 0.0) -> None:
        with self._changed:
            self._behaviour, self._delay_s = behaviour, delay_s
            self._changed.notify_all()

    def next_behaviour(self) -> Behaviour | None:
        """Wait if needed, then return the behaviour for one request; None if the proxy was closed in the meantime."""
        with self._changed:
            self.requests += 1
            self._changed.wait_for(lambda: self._closed or self._behaviour is not Behaviour.SILENT)
            if self._behaviour is Behaviour.LATE:
                self._changed.wait_for(lambda: self._closed or self._behaviour is not Behaviour.LATE, self._delay_s)
            return None if self._closed else self._behaviour

    def ask(self, path: str) -> tuple[int, str, bytes]:
        """Status, content type and content of Spark's answer."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=UPSTREAM_LIMIT_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type", "text/plain"), answer.read()
        except OSError as error:
            return 502, "text/plain", str(error).encode()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, proxy: Proxy, host: str, port: int) -> None:
        super().__init__((host, port), _Handler)
        self.proxy = proxy

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the experiment, so nothing is printed about it."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        behaviour = self.server.proxy.next_behaviour()
        if behaviour is None or behaviour is Behaviour.SILENT:
            self.close_connection = True
        elif behaviour is Behaviour.ERROR:
            self._answer(500, "text/plain", b"this proxy is set to fail")
        elif behaviour is Behaviour.GARBAGE:
            self._answer(200, "application/json", GARBAGE)
        else:
            status, kind, content = self.server.proxy.ask(self.path)
            self._answer(status, kind, content, half=behaviour is Behaviour.HALF)

    def _answer(self, status: int, kind: str, content: bytes, *, half: bool = False) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if half else content)
        except OSError:
            half = True  # the client did not wait for the answer
        if half:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Log nothing: requests come every second."""
