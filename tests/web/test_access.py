"""Sign-ins over a real server: throttled, revocable, and written down."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import httpx
import pytest

from homeostat.core.access_records import AccessContent, access_of
from homeostat.core.records import Record
from homeostat.store.access_file import AccessFile
from homeostat.store.sqlite import SqliteStore
from homeostat.web import access, token_file
from homeostat.web.access import AccessTrail
from homeostat.web.throttle import CLIENT_BURST
from homeostat.web.token_file import Person, TokenFile
from support.serving import OPERATE, READ, serving


def accesses(log: Path) -> list[AccessContent]:
    contents = [access_of(record) for record in AccessFile(log).newest(1_000)]
    return [content for content in contents if content is not None][::-1]


def sign_in(client: httpx.Client, token: str) -> int:
    return client.post("/session", data={"token": token}, headers={"origin": str(client.base_url)}).status_code


def test_guessing_is_slowed_down_and_who_is_signed_in_is_not(tmp_path: Path) -> None:
    with (
        serving(tmp_path / "log.sqlite", local=False) as served,
        served.client() as guest,
        served.client() as signed_in,
        served.client(READ) as program,
    ):
        assert sign_in(signed_in, OPERATE) == 303
        assert program.get("/openapi.json").status_code == 200
        statuses = [sign_in(guest, f"guess-{number}") for number in range(CLIENT_BURST + 5)]
        assert statuses == [403] * CLIENT_BURST + [429] * 5
        late = guest.post("/session", data={"token": "guess"}, headers={"origin": served.url})
        assert int(late.headers["retry-after"]) > 0
        assert guest.get("/index.json", headers={"authorization": "Bearer guess"}).status_code == 429
        assert signed_in.get("/openapi.json").status_code == 200
        assert program.get("/openapi.json").status_code == 200
        assert sign_in(guest, OPERATE) == 303, "a token that has been used before need not wait"


def test_a_header_with_a_wrong_token_counts_as_a_guess(tmp_path: Path) -> None:
    with serving(tmp_path / "log.sqlite", local=False) as served, served.client("wrong") as client:
        statuses = [client.get("/openapi.json").status_code for _ in range(CLIENT_BURST + 1)]
    assert statuses == [401] * CLIENT_BURST + [429]


def test_a_revoked_token_ends_sessions_requests_and_streams_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homeostat.web.feed.KEEP_ALIVE_S", 0.1)
    file = tmp_path / "tokens"
    token = token_file.create(file, "alice", "operate")
    with (
        serving(tmp_path / "log.sqlite", local=False, tokens=TokenFile(file)) as served,
        served.client() as browser,
        served.client(token) as program,
    ):
        assert sign_in(browser, token) == 303
        assert browser.get("/openapi.json").status_code == 200
        with program.stream("GET", "/events") as stream:
            lines = stream.iter_lines()
            next(lines)
            token_file.revoke(file, "alice")
            assert all(not line.startswith("event") for line in lines), "the stream ends"
        assert browser.get("/openapi.json").status_code == 401
        assert program.get("/openapi.json").status_code == 401


def test_who_signs_in_and_who_is_refused_is_written_down(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    with serving(log, local=False) as served, served.client() as client:
        sign_in(client, "a wrong guess")
        client.get("/index.json")
        sign_in(client, OPERATE)
        client.post("/session/end", headers={"origin": served.url})
        with served.client(READ) as bob:
            bob.post("/orders.json", json={"run": "x", "command": "pause"})
    events = [(each.event, each.by, each.request, each.answer.partition(",")[0]) for each in accesses(log)]
    assert events == [
        ("refusal", "", "POST /session", "403"),
        ("refusal", "", "GET /index.json", "401"),
        ("sign-in", "alice", "", ""),
        ("sign-out", "alice", "", ""),
        ("refusal", "bob", "POST /orders.json", "403"),
    ]
    assert {each.origin for each in accesses(log)} == {"127.0.0.1"}
    text = AccessFile(log).path.read_text()
    assert OPERATE not in text
    assert "a wrong guess" not in text
    assert stat.S_IMODE(AccessFile(log).path.stat().st_mode) == 0o600


def test_a_flood_of_refusals_is_counted_and_not_written_down_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "REFUSALS_BURST", 3)
    trail = AccessTrail(tmp_path / "log.sqlite")
    for _ in range(50):
        trail.refused(None, "10.0.0.1", "GET /index.json", 401)
    trail.signed_in(Person("alice", "read"), "10.0.0.1")
    assert [each.event for each in accesses(tmp_path / "log.sqlite")] == ["refusal"] * 3 + ["sign-in"]
    trail._allowance.left = 1.0
    trail.refused(None, "10.0.0.1", "GET /index.json", 401)
    assert accesses(tmp_path / "log.sqlite")[-1].unrecorded == 47


def test_a_trail_that_cannot_be_written_is_reported_once_and_fails_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    messages: list[str] = []
    trail = AccessTrail(tmp_path / "file" / "log.sqlite", messages.append)
    for _ in range(2):
        trail.signed_in(Person("alice", "read"), "10.0.0.1")
    assert len(messages) == 1
    assert "accesses cannot be recorded" in messages[0]


def test_the_audit_trail_is_for_people_who_operate(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    store = SqliteStore(log)
    store.append("app/words", [Record("g-1", "engine", time.time(), "the engine runs")])
    store.close()
    with serving(log, local=False) as served, served.client(OPERATE) as alice, served.client(READ) as bob:
        assert alice.post("/orders.json", json={"run": "app/words", "command": "pause"}).status_code == 202
        assert bob.get("/audit.json").status_code == 403
        refusal, order = alice.get("/audit.json").json()["lines"]
        assert (refusal["who"], refusal["what"]) == ("bob", "refusal: GET /audit.json")
        assert (order["who"], order["role"], order["origin"]) == ("alice", "operate", "API from 127.0.0.1")
        assert "GET /audit.json" in alice.get("/audit", headers={"accept": "text/html"}).text
