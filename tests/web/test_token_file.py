"""Tokens are kept as hashes in a file of their owner, and a change of the file takes effect at once."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.web import token_file
from homeostat.web.token_file import Person, TokenFile, read_entries, require_tokens

PLAIN = "0123456789abcdef"


def tokens_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "tokens"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_created_token_is_kept_as_a_hash_in_a_file_of_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tokens"
    token = token_file.create(path, "alice", "operate")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token not in path.read_text()
    assert TokenFile(path).person(token) == Person("alice", "operate")
    assert TokenFile(path).person(path.read_text().split()[2]) is None, "the hash is no token"


def test_a_revoked_token_ends_without_a_restart_and_a_new_one_begins(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    changes: list[str] = []
    tokens_now = TokenFile(path, changes.append)
    token = token_file.create(path, "alice", "operate")
    assert tokens_now.person(token) == Person("alice", "operate")
    fresh = token_file.rotate(path, "alice")
    assert tokens_now.person(token) is None
    assert tokens_now.person(fresh) == Person("alice", "operate")
    token_file.revoke(path, "alice")
    assert tokens_now.person(fresh) is None
    valid, invalid = "a token of alice (operate) is valid now", "a token of alice (operate) is no longer valid"
    assert changes == [valid, invalid, valid, invalid]


@pytest.mark.parametrize("damage", ["mode", "text", "missing"])
def test_while_the_file_cannot_be_read_no_token_is_valid(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "tokens"
    token = token_file.create(path, "alice", "operate")
    tokens_now = TokenFile(path)
    if damage == "mode":
        path.chmod(0o644)
    elif damage == "text":
        path.write_text("nonsense\n")
    else:
        path.unlink()
    assert tokens_now.person(token) is None


def test_lines_of_earlier_versions_are_read_and_then_hashed(tmp_path: Path) -> None:
    path = tokens_file(tmp_path, f"# who may do what\noperate alice {PLAIN}\n\nread bob fedcba9876543210\n")
    assert TokenFile(path).person(PLAIN) == Person("alice", "operate")
    assert token_file.hash_plain(path) == 2
    assert PLAIN not in path.read_text()
    assert TokenFile(path).person(PLAIN) == Person("alice", "operate")
    assert TokenFile(path).person("fedcba9876543210") == Person("bob", "read")
    assert token_file.hash_plain(path) == 0


@pytest.mark.parametrize(
    ("text", "mode", "what"),
    [
        (f"operate alice {PLAIN}\n", 0o644, "other users can read the tokens"),
        ("operate alice short\n", 0o600, "tokens:1: the token is too short"),
        (f"admin alice {PLAIN}\n", 0o600, "not a token"),
        ("operate alice\n", 0o600, "not a token"),
        ("\n", 0o600, "the file has no tokens"),
    ],
)
def test_tokens_that_protect_nothing_are_refused(tmp_path: Path, text: str, mode: int, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as refused:
        require_tokens(tokens_file(tmp_path, text, mode))
    assert PLAIN not in refused.value.line


@pytest.mark.parametrize("name", ["", "two words", "#x", "x" * 101, "a\x1bb"])
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is not a name"):
        token_file.create(tmp_path / "tokens", name, "read")


def test_names_are_unique_and_must_exist(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    token_file.create(path, "alice", "read")
    with pytest.raises(ConfigError, match="homeostat token rotate alice"):
        token_file.create(path, "alice", "operate")
    for change in (token_file.rotate, token_file.revoke):
        with pytest.raises(ConfigError, match="did you mean 'alice'"):
            change(path, "alicia")


def test_changes_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    names = [f"person-{number}" for number in range(12)]
    threads = [threading.Thread(target=token_file.create, args=(path, name, "read")) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.person.name for entry in read_entries(path)) == sorted(names)
