"""`homeostat token`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from homeostat.web.token_file import Person, TokenFile

Homeostat = Callable[..., Any]


def test_a_token_is_made_listed_rotated_and_revoked(homeostat: Homeostat, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    options = ("--tokens", str(file))
    first = homeostat("token", "create", "alice", *options).out.strip()
    assert TokenFile(file).person(first) == Person("alice", "operate")
    homeostat("token", "create", "bob", "--role", "read", *options)
    listed = homeostat("token", "list", *options, "--json").out
    assert [(each["name"], each["role"]) for each in json.loads(listed)["tokens"]] == [
        ("alice", "operate"),
        ("bob", "read"),
    ]
    assert first not in listed + homeostat("token", "list", *options).out
    second = json.loads(homeostat("token", "rotate", "alice", *options, "--json").out)["token"]
    assert TokenFile(file).person(first) is None
    assert homeostat("token", "revoke", "alice", *options).code == 0
    assert TokenFile(file).person(second) is None


def test_the_file_of_the_user_is_the_default(homeostat: Homeostat, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    token = homeostat("token", "create", "alice").out.strip()
    assert TokenFile(tmp_path / "state" / "homeostat" / "tokens").person(token) is not None


def test_tokens_in_plain_text_are_hashed(homeostat: Homeostat, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("operate alice 0123456789abcdef\n")
    file.chmod(0o600)
    assert "1 token replaced with its hash" in homeostat("token", "hash", "--tokens", str(file)).out
    assert "0123456789abcdef" not in file.read_text()


def test_mistakes_are_one_line(homeostat: Homeostat, tmp_path: Path) -> None:
    file = str(tmp_path / "tokens")
    assert "did you mean 'operate'" in homeostat("token", "create", "alice", "--role", "operat", "--tokens", file).err
    assert "'alice' has no token" in homeostat("token", "revoke", "alice", "--tokens", file).err
