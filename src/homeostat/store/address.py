"""Where a log is: the path of a SQLite file, or the address of a PostgreSQL database."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from homeostat.core.errors import ConfigError

SCHEMES = ("postgresql", "postgres")
# Holds the password where an address has none. Other programs on PostgreSQL use PGPASSWORD, perhaps with another one.
PASSWORD_VARIABLE = "HOMEOSTAT_STORE_PASSWORD"
FORM = "write postgresql://user@host:5432/database"


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """`text` has no password, so that it can be printed, written to files and passed to other processes."""

    text: str
    password: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.text


LogAddress: TypeAlias = Path | PostgresAddress


def is_postgres(text: str) -> bool:
    return text.partition("://")[0] in SCHEMES and "://" in text


def log_address(place: str | Path | PostgresAddress) -> LogAddress:
    """The address that a text names; a path or an address stays as it is.

    >>> log_address("postgresql://anna:secret@db/homeostat")
    PostgresAddress(text='postgresql://anna@db/homeostat')
    """
    if not isinstance(place, str):
        return place
    return _postgres_address(place) if is_postgres(place) else Path(place)


def without_password(text: str) -> str:
    """
    >>> without_password("postgresql://anna:secret@db/homeostat")
    'postgresql://anna@db/homeostat'
    """
    return str(log_address(text)) if is_postgres(text) else text


def password_of(address: PostgresAddress, environ: Mapping[str, str] = os.environ) -> str:
    """The password that is given for this address. If it is empty, the PostgreSQL library looks for one: in PGPASSWORD
    and in ~/.pgpass."""
    return address.password or environ.get(PASSWORD_VARIABLE, "")


def hand_down(log: LogAddress) -> None:
    """Let the processes that this one starts find the password, which is not part of their command lines."""
    if isinstance(log, PostgresAddress) and log.password:
        os.environ[PASSWORD_VARIABLE] = log.password


def resolved(log: LogAddress) -> LogAddress:
    """The same log, wherever the working directory is."""
    return log.resolve() if isinstance(log, Path) else log


def is_missing(log: LogAddress) -> bool:
    """Whether there is no such file. A database is asked when it is opened."""
    return isinstance(log, Path) and not log.exists()


def _postgres_address(text: str) -> PostgresAddress:
    try:
        parts = urlsplit(text)
        user, at, hosts = parts.netloc.rpartition("@")
        name, _, password = user.partition(":")
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise ConfigError("not a valid PostgreSQL address", where="store", fix=FORM) from None
    query = parts.query
    if any(key == "password" for key, _ in options):
        password = next(value for key, value in options if key == "password")
        query = urlencode([each for each in options if each[0] != "password"], quote_via=quote)
    else:
        password = unquote(password)
    return PostgresAddress(urlunsplit((parts.scheme, f"{name}{at}{hosts}", parts.path, query, "")), password)
