"""Who may do what, over a real server."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

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
    with serving(log, local=False) as found:
        with found.client() as client:
            for path in ("/index.json", "/metrics", "/openapi.json", "/events"):
                assert client.get(path).status_code == 401
            page = client.get("/query?run=app/words", headers={"accept": "text/html"})
            assert (page.status_code, page.headers["location"]) == (303, "/sign-in?next=/query%3Frun%3Dapp/words")
        with found.client(READ) as client:
            assert client.get("/index.json").status_code == 200
            assert client.post("/orders.json", json={"run": "app/words", "command": "pause"}).status_code == 403
        with found.client(OPERATE) as client:
            assert client.get("/index.json").status_code == 200


def test_no_page_and_no_answer_holds_a_token(served: Served) -> None:
    with served.client(OPERATE) as client:
        for path in ("/", "/query?run=app/words", "/query.json?run=app/words", "/openapi.json", "/metrics"):
            assert OPERATE not in client.get(path).text
