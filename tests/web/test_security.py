"""Tokens, names of this machine, and the origin of a request."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.web.security import Person, Tokens, own_host, own_tokens, same_origin


def tokens_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_tokens_name_people_and_roles(tmp_path: Path) -> None:
    text = "# who may do what\noperate alice 0123456789abcdef\n\nread bob fedcba9876543210\n"
    found = Tokens.load(tokens_file(tmp_path, text))
    assert found.person("0123456789abcdef") == Person("alice", "operate")
    assert found.person("fedcba9876543210") == Person("bob", "read")
    assert found.person("") is None
    assert found.person("0123456789abcdeg") is None


@pytest.mark.parametrize(
    ("text", "mode", "what"),
    [
        ("operate alice 0123456789abcdef\n", 0o644, "other users can read the tokens"),
        ("operate alice short\n", 0o600, "tokens:1: the token is too short"),
        ("admin alice 0123456789abcdef\n", 0o600, "not a token"),
        ("operate alice\n", 0o600, "not a token"),
        ("\n", 0o600, "the file has no tokens"),
    ],
)
def test_tokens_that_protect_nothing_are_refused(tmp_path: Path, text: str, mode: int, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as refused:
        Tokens.load(tokens_file(tmp_path, text, mode))
    assert "0123456789abcdef" not in refused.value.line


def test_the_own_token_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "tokens"
    own_tokens(path, "alice")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    role, name, token = path.read_text().split()
    assert own_tokens(path, "alice").person(token) == Person(name, "operate")
    assert (role, name) == ("operate", "alice")


def test_where_no_token_can_be_kept_nobody_operates(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert own_tokens(blocked / "tokens", "alice").person("") is None


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
