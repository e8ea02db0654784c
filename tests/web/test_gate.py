"""Who may do what, over a real server."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from starlette.datastructures import URL
from starlette.requests import HTTPConnection

from homeostat.web.gate import OPEN
from support.living import Living
from support.serving import OPERATE, READ, Served, serving


@pytest.mark.parametrize("token", ["", READ, "wrong"])
def test_orders_need_the_role(served: Served, words: Living, token: str) -> None:
    with served.client(token) as client:
        origin = {"origin": served.url}
        answer = client.post("/orders.json", json={"run": "app/words", "command": "pause"}, headers=origin)
        assert answer.status_code == 403
    words.step()
    assert words.manager.state.paused == ""


def test_a_browser_signs_in_with_a_token_and_gets_a_cookie_that_scripts_cannot_read(served: Served) -> None:
    with served.client() as client:
        headers = {"origin": served.url}
        wrong = client.post("/session", data={"token": "wrong", "next": "/"}, headers=headers)
        assert (wrong.status_code, "set-cookie" in wrong.headers) == (403, False)
        right = client.post("/session", data={"token": OPERATE, "next": "//evil.example"}, headers=headers)
        assert (right.status_code, right.headers["location"]) == (303, "/")
        cookie = right.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert OPERATE not in cookie
        assert "alice · operate" in client.get("/", headers={"accept": "text/html"}).text
        assert client.post("/session/end", headers=headers).status_code == 303
        assert "alice" not in client.get("/", headers={"accept": "text/html"}).text


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}],
)
def test_changes_from_other_pages_are_refused(alice: httpx.Client, headers: dict[str, str]) -> None:
    answer = alice.post("/orders.json", json={"run": "app/words", "command": "pause"}, headers=headers)
    assert answer.status_code == 403


def test_a_foreign_name_for_this_machine_is_refused(client: httpx.Client) -> None:
    assert client.get("/index.json", headers={"host": "rebound.example:80"}).status_code == 403


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[" * 10_000, 400),
        (b'{"run": "app/words", "command": "drop"}', 400),
        (b'{"run": "app/words", "command": "pause", "more": 1}', 400),
        (b'{"run": "nowhere", "command": "pause"}', 404),
        (b" " * 20_000, 413),
    ],
)
def test_orders_of_no_sense_are_refused(alice: httpx.Client, body: bytes, status: int) -> None:
    assert alice.post("/orders.json", content=body).status_code == status


def test_a_body_without_a_length_is_bounded_too(alice: httpx.Client) -> None:
    assert alice.post("/orders.json", content=(b" " * 1_000 for _ in range(100))).status_code == 413


def test_elsewhere_than_on_this_machine_everything_needs_a_token(log: Path, words: Living) -> None:
    with serving(log, local=False) as served:
        with served.client() as client:
            for path in ("/index.json", "/metrics", "/openapi.json", "/events"):
                assert client.get(path).status_code == 401
            page = client.get("/query?run=app/words", headers={"accept": "text/html"})
            assert (page.status_code, page.headers["location"]) == (303, "/sign-in?next=/query%3Frun%3Dapp/words")
        with served.client(READ) as client:
            assert client.get("/index.json").status_code == 200
            assert client.post("/orders.json", json={"run": "app/words", "command": "pause"}).status_code == 403
        with served.client(OPERATE) as client:
            assert client.get("/index.json").status_code == 200


def test_no_page_and_no_answer_holds_a_token(served: Served) -> None:
    with served.client(OPERATE) as client:
        for path in ("/", "/query?run=app/words", "/query.json?run=app/words", "/openapi.json", "/metrics"):
            assert OPERATE not in client.get(path).text


@pytest.mark.parametrize("host", ["x/static/", "x/sign-in?", "x/session#", "x:1/static/..", "[::1]/static/"])
def test_a_host_that_holds_a_path_opens_nothing(log: Path, host: str) -> None:
    with serving(log, local=False) as served, served.client() as client:
        assert client.get("/index.json", headers={"host": host}).status_code == 401


def test_what_is_open_is_decided_by_the_path_that_is_routed(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a starlette that makes the path of `request.url` from the Host header (CVE-2026-48710)."""
    monkeypatch.setattr(HTTPConnection, "url", property(lambda request: URL("http://x/static/")))
    with serving(log, local=False) as served, served.client() as client:
        for path in ("/index.json", "/metrics", "/orders.json", "/static", *(f"{path}x" for path in OPEN)):
            assert client.get(path).status_code == 401, path
        assert client.get("/static/style.css").status_code == 200


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2f..%2fapp.py", "/static//etc/passwd"]
)
def test_nothing_outside_the_static_files_is_served(log: Path, path: str) -> None:
    with serving(log, local=False) as served, served.client() as client:
        assert client.get(path).status_code in (401, 404)


@pytest.mark.parametrize("place", ["//evil.example", "/\\evil.example", "https://evil.example", "/x\r\ny: z", ""])
def test_signing_in_leads_nowhere_else(served: Served, place: str) -> None:
    with served.client() as client:
        answer = client.post("/session", data={"token": OPERATE, "next": place}, headers={"origin": served.url})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize(("secure", "expected"), [(True, True), (False, False)])
def test_the_cookie_is_for_https_alone_where_people_come_by_https(log: Path, secure: bool, expected: bool) -> None:
    with serving(log, local=False, secure=secure) as served, served.client() as client:
        answer = client.post("/session", data={"token": OPERATE}, headers={"origin": served.url})
        assert ("; secure" in answer.headers["set-cookie"].lower()) is expected


def test_a_client_cannot_have_too_many_requests_under_way(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.web.gate.MOST_PER_CLIENT", 0)
    with serving(log, local=False) as served, served.client(READ) as client:
        assert client.get("/index.json").status_code == 200, "this machine has many people"
        monkeypatch.setattr("homeostat.web.gate.client_of", lambda request: "192.0.2.7")
        assert client.get("/index.json").status_code == 503
