"""The people who have tokens, with their roles. A file stores the hashes of the tokens. Changes to it take effect at
once.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from homeostat.core.errors import ConfigError
from homeostat.strict.toml_reading import nearest
from homeostat.web.private_files import read_private

Role = Literal["read", "operate"]
ROLES: tuple[Role, ...] = ("read", "operate")
SHORTEST_TOKEN = 16
LONGEST_NAME = 100
# 192 bits: nobody guesses such a token, so a fast hash protects it as well as a slow one would.
TOKEN_BYTES = 24
_HASHED = "sha256:"
_FORM = f"ROLE NAME TOKEN, where ROLE is {' or '.join(ROLES)}"


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    role: Role

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """A line of a token file. `plain`: the line still has the token itself instead of its hash."""

    person: Person
    digest: str
    created: str = ""
    plain: bool = False

    @property
    def line(self) -> str:
        return " ".join(filter(None, (self.person.role, self.person.name, f"{_HASHED}{self.digest}", self.created)))


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


class Tokens:
    """People by the hash of their token."""

    def __init__(self, people: Mapping[str, Person]) -> None:
        self._people = {digest_of(token): person for token, person in people.items()}

    def person(self, token: str) -> Person | None:
        return self.holder(digest_of(token))

    def holder(self, digest: str) -> Person | None:
        return self._people.get(digest)


class TokenFile(Tokens):
    """The tokens of a file, which is read again whenever it changes. While it cannot be read, no token is valid."""

    def __init__(self, path: Path, on_change: Callable[[str], None] = lambda line: None) -> None:
        super().__init__({})
        self._path, self._on_change = path, on_change
        self._version: tuple[int, int, int] | None = None
        self._lock = threading.Lock()
        self._people = self._read() if path.exists() else {}

    def holder(self, digest: str) -> Person | None:
        with self._lock:
            if _version(self._path) != self._version:
                self._reload()
            return self._people.get(digest)

    def _reload(self) -> None:
        before = self._people
        try:
            self._people = self._read()
        except ConfigError as error:
            self._people = {}
            self._on_change(f"no token is valid until this is fixed: {error.line}")
            return
        for digest, person in before.items():
            if digest not in self._people:
                self._on_change(f"a token of {person.name} ({person.role}) is no longer valid")
        for digest, person in self._people.items():
            if digest not in before:
                self._on_change(f"a token of {person.name} ({person.role}) is valid now")

    def _read(self) -> dict[str, Person]:
        self._version = _version(self._path)
        if self._version is None:
            return {}
        return {entry.digest: entry.person for entry in read_entries(self._path)}


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def read_entries(path: Path) -> list[TokenEntry]:
    lines = read_private(path, "tokens").splitlines()
    return [
        _entry(line.split(), f"{path}:{number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.startswith("#")
    ]


def require_tokens(path: Path) -> list[TokenEntry]:
    """The entries of the token file. A file without tokens is an error, because nobody could sign in."""
    entries = read_entries(path)
    if not entries:
        raise ConfigError(
            "the file has no tokens", where=str(path), fix=f"create one: homeostat token create NAME --tokens {path}"
        )
    return entries


def _entry(words: list[str], where: str) -> TokenEntry:
    role = next((role for role in ROLES if words[0] == role), None)
    if len(words) not in (3, 4) or role is None:
        raise ConfigError("not a token", where=where, fix=f"write {_FORM}, or use `homeostat token create`")
    person, created = Person(words[1], role), words[3] if len(words) == 4 else ""
    if words[2].startswith(_HASHED):
        return TokenEntry(person, words[2].removeprefix(_HASHED), created)
    if len(words[2]) < SHORTEST_TOKEN:
        raise ConfigError("the token is too short", where=where, fix=f"use at least {SHORTEST_TOKEN} characters")
    return TokenEntry(person, digest_of(words[2]), created, plain=True)


def create(path: Path, name: str, role: Role) -> str:
    """Add a token for a person and return it. The file keeps only its hash."""
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or len(name.split()) != 1 or name[0] == "#":
        raise ConfigError(
            f"{name!r} is not a name", where="NAME", fix=f"use at most {LONGEST_NAME} characters without spaces"
        )
    with _changing(path) as entries:
        if any(entry.person.name == name for entry in entries):
            raise ConfigError(f"{name} has a token already", where=str(path), fix=f"homeostat token rotate {name}")
        token = secrets.token_urlsafe(TOKEN_BYTES)
        entries.append(TokenEntry(Person(name, role), digest_of(token), _now()))
    return token


def rotate(path: Path, name: str) -> str:
    """Replace a person's token with a new one, and return it. The old one is no longer valid."""
    with _changing(path) as entries:
        own_entries = _of_name(entries, name, path)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        fresh = replace(own_entries[-1], digest=digest_of(token), created=_now(), plain=False)
        entries[:] = [entry for entry in entries if entry not in own_entries] + [fresh]
    return token


def revoke(path: Path, name: str) -> None:
    with _changing(path) as entries:
        own_entries = _of_name(entries, name, path)
        entries[:] = [entry for entry in entries if entry not in own_entries]


def hash_plain(path: Path) -> int:
    """Replace plain-text tokens with their hashes, and return how many there were."""
    with _changing(path) as entries:
        return sum(entry.plain for entry in entries)


def _of_name(entries: Iterable[TokenEntry], name: str, path: Path) -> list[TokenEntry]:
    names = [entry.person.name for entry in entries]
    if name not in names:
        raise ConfigError(f"{name!r} has no token", where=str(path), fix=nearest(name, names) if names else "")
    return [entry for entry in entries if entry.person.name == name]


@contextmanager
def _changing(path: Path) -> Iterator[list[TokenEntry]]:
    """The entries, to be changed in place. The file is replaced as a whole; comments are not kept."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(f"the tokens cannot be written: {error.strerror}", where=str(path)) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        entries = read_entries(path) if path.exists() else []
        yield entries
        _write(path, "".join(f"{entry.line}\n" for entry in entries))
    finally:
        os.close(lock)


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise ConfigError(f"the tokens cannot be written: {error.strerror}", where=str(path)) from error


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
