"""Who may do what: tokens and roles, sessions, and the checks of every request."""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from homeostat.core.errors import ConfigError

Role = Literal["read", "operate"]
ROLES: tuple[Role, ...] = ("read", "operate")
SHORTEST_TOKEN = 16
SESSION_S = 12 * 3600.0
MOST_SESSIONS = 1_000
LARGEST_BODY = 16 * 1024
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    role: Role

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


class Tokens:
    """`ROLE NAME TOKEN` on each line of a file that only its owner can read."""

    def __init__(self, people: Mapping[str, Person]) -> None:
        self._people = dict(people)

    @classmethod
    def load(cls, path: Path) -> Tokens:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
            readable = path.stat().st_mode & 0o077
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the tokens cannot be read: {type(error).__name__}", where=str(path)) from error
        if readable:
            raise ConfigError("other users can read the tokens", where=str(path), fix=f"chmod 600 {path}")
        people: dict[str, Person] = {}
        for number, line in enumerate(lines, 1):
            if line.strip() and not line.startswith("#"):
                token, person = _person(line.split(), f"{path}:{number}")
                people[token] = person
        if not people:
            raise ConfigError("the file has no tokens", where=str(path), fix="add lines of the form ROLE NAME TOKEN")
        return cls(people)

    def person(self, token: str) -> Person | None:
        """Compares every token in constant time, so that the time to answer reveals nothing."""
        token_bytes, owner = token.encode(), None
        for own_token, person in self._people.items():
            if hmac.compare_digest(own_token.encode(), token_bytes):
                owner = person
        return owner


def _person(words: list[str], where: str) -> tuple[str, Person]:
    role = next((role for role in ROLES if words[0] == role), None)
    if len(words) != 3 or role is None:
        raise ConfigError("not a token", where=where, fix=f"write ROLE NAME TOKEN, where ROLE is {' or '.join(ROLES)}")
    if len(words[2]) < SHORTEST_TOKEN:
        raise ConfigError("the token is too short", where=where, fix=f"use at least {SHORTEST_TOKEN} characters")
    return words[2], Person(words[1], role)


def own_tokens(path: Path, name: str) -> Tokens:
    """Tokens for this machine, created once in a file that only its owner can read."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(f"operate {name} {secrets.token_urlsafe(24)}\n")
    except OSError:
        if not path.is_file():
            return Tokens({})  # a token that cannot be written down cannot be used
    return Tokens.load(path)


class Sessions:
    """Sessions of browsers that signed in with a token. The token itself is never sent back."""

    def __init__(self) -> None:
        self._people: OrderedDict[str, tuple[Person, float]] = OrderedDict()

    def begin(self, person: Person) -> str:
        key = secrets.token_urlsafe(24)
        self._people[key] = (person, time.monotonic() + SESSION_S)
        while len(self._people) > MOST_SESSIONS:
            self._people.popitem(last=False)
        return key

    def person(self, key: str) -> Person | None:
        person, until_s = self._people.get(key, (None, 0.0))
        return person if time.monotonic() < until_s else None

    def end(self, key: str) -> None:
        self._people.pop(key, None)


def cookie(host: str) -> str:
    """Cookies ignore ports: without the port in the name, two dashboards on a machine would sign each other out."""
    port = host.rpartition(":")[2]
    return f"homeostat-{port}" if port.isdigit() else "homeostat"


def loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def own_host(header: str) -> bool:
    """Whether a Host header names this machine: another name may be a foreign page that rebinds its own name."""
    host, colon, port = header.rpartition(":")
    return loopback(host if colon and port.isdigit() else header)


def same_origin(headers: Mapping[str, str], scheme: str) -> bool:
    """Whether a change was requested by a page of this dashboard, or by a program that sends its own token."""
    origin = headers.get("origin")
    if origin is not None:
        return origin.partition("://")[2] == headers.get("host") and origin.partition("://")[0] in (scheme, "https")
    site = headers.get("sec-fetch-site")
    return site == "same-origin" if site is not None else "authorization" in headers
