"""The proxy misbehaves as told, and as soon as told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest

from homeostat.lab.rest_proxy import Behaviour, Proxy

WaitUntil = Callable[[Callable[[], bool], str], None]

CONTENT = json.dumps({"path": "x" * 100}).encode()


class Upstream(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Upstream) as upstream:
        thread = Thread(target=upstream.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        with Proxy(f"http://127.0.0.1:{upstream.server_port}") as running:
            yield running
        upstream.shutdown()
        thread.join()


@pytest.fixture
def client(proxy: Proxy) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=proxy.url, timeout=30, trust_env=False) as connected:
        yield connected


def test_a_faithful_proxy_passes_everything_on(client: httpx.Client) -> None:
    answer = client.get("/api/v1/applications")
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["content-type"] == "application/json"
    assert client.get("/missing").status_code == 404


def test_garbage_and_errors_on_one_connection(proxy: Proxy, client: httpx.Client) -> None:
    proxy.behave(Behaviour.GARBAGE)
    with pytest.raises(ValueError, match=r"codec|JSON|Expecting"):
        client.get("/").json()
    proxy.behave(Behaviour.ERROR)
    assert client.get("/").status_code == 500
    proxy.behave(Behaviour.FAITHFUL)
    assert client.get("/").json()
    assert proxy.requests == 3


def test_half_an_answer_breaks_off(proxy: Proxy, client: httpx.Client) -> None:
    proxy.behave(Behaviour.HALF)
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/")


def test_a_late_answer_is_too_late_for_the_impatient(proxy: Proxy, client: httpx.Client) -> None:
    proxy.behave(Behaviour.LATE, delay_s=600)
    with pytest.raises(httpx.ReadTimeout):
        client.get("/", timeout=0.1)
    proxy.behave(Behaviour.LATE, delay_s=0.05)
    assert client.get("/").content == CONTENT


def test_silence_ends_when_the_behaviour_changes(proxy: Proxy, client: httpx.Client, wait_until: WaitUntil) -> None:
    proxy.behave(Behaviour.SILENT)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(client.get, "/")
        wait_until(lambda: proxy.requests == 1, "the request arrived")
        assert not answer.done()
        proxy.behave(Behaviour.FAITHFUL)
        assert answer.result().content == CONTENT


def test_a_target_that_is_gone_is_a_bad_gateway() -> None:
    with Proxy("http://127.0.0.1:9") as lonely, httpx.Client(base_url=lonely.url, trust_env=False) as client:
        assert client.get("/").status_code == 502
