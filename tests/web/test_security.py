"""Sessions, names of this machine, and the origin of a request."""

from __future__ import annotations

import pytest

from homeostat.web.security import MOST_SESSIONS, Sessions, own_host, same_origin


def test_a_session_holds_the_hash_of_its_token_until_it_ends() -> None:
    sessions = Sessions()
    key = sessions.begin("digest")
    assert sessions.digest(key) == "digest"
    sessions.end(key)
    assert sessions.digest(key) is None
    assert sessions.digest("") is None


def test_the_number_of_sessions_is_bounded() -> None:
    sessions = Sessions()
    keys = [sessions.begin("digest") for _ in range(MOST_SESSIONS + 1)]
    assert sessions.digest(keys[0]) is None
    assert sessions.digest(keys[-1]) == "digest"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:80", "[::1]:80", "localhost:8088"])
def test_this_machine_has_these_names(host: str) -> None:
    assert own_host(host)


@pytest.mark.parametrize("host", ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "10.0.0.1"])
def test_and_no_others(host: str) -> None:
    assert not own_host(host)


@pytest.mark.parametrize(
    ("headers", "ours"),
    [
        ({"host": "a:1", "origin": "http://a:1"}, True),
        ({"host": "a:1", "origin": "https://a:1"}, True),
        ({"host": "a:1", "origin": "http://a:2"}, False),
        ({"host": "a:1", "origin": "null"}, False),
        ({"host": "a:1", "sec-fetch-site": "same-origin"}, True),
        ({"host": "a:1", "sec-fetch-site": "same-site"}, False),
        ({"host": "a:1", "authorization": "Bearer x"}, True),
        ({"host": "a:1"}, False),
        ({"host": "a:1", "origin": "http://evil", "authorization": "Bearer x"}, False),
    ],
)
def test_only_our_own_pages_change_anything(headers: dict[str, str], ours: bool) -> None:
    assert same_origin(headers, "http") is ours
