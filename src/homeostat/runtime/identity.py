"""The identity of an application: an id that no other application has.

It is kept in the application's directory. It survives restarts and moves of the directory. A copy of the directory has
the same identity until its file is deleted.

An application that has a name in its settings needs no directory for this: its identity follows from the name, so that
a driver on any machine has it.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from homeostat.core.errors import ConfigError
from homeostat.runtime.launch import LEASE

IDENTITY = "identity.json"
FORMAT = 1
# Never to be changed: it would make every application with a name a new one.
_NAMES = uuid.UUID("7c1f8a52-60a4-4f0e-9f4e-3f1d8c2b9a75")
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Identity:
    """`adopts` is true if the directory is older than identities: version 0.1.0 wrote its runs without one. `name` is
    the name in the settings, if the identity follows from it."""

    id: str
    adopts: bool = False
    name: str = ""


def identity_of_name(name: str) -> Identity:
    return Identity(uuid.uuid5(_NAMES, name).hex, name=name)


def is_older_than_identities(directory: Path) -> bool:
    """Call this before the lease is taken: a lease without an identity is the only lasting sign of version 0.1.0."""
    return (directory / LEASE).exists() and not (directory / IDENTITY).exists()


def identity_of(directory: Path, *, adopts: bool = False) -> Identity:
    """Read the identity, or give the directory a new one. The file is written once and never changed."""
    path = directory / IDENTITY
    if not path.exists():
        _write_once(path, {"format": FORMAT, "identity": uuid.uuid4().hex, "adopts": adopts})
    return read_identity(path)


def how_to_tell_apart(identity: Identity, directory: Path) -> str:
    """What to do if the other application with this identity is really another one."""
    if identity.name:
        return f"; if it is another application, give this one another name than `application` = {identity.name!r}"
    return f"; if {directory} is a copy, delete {directory / IDENTITY} to give it its own identity"


def read_identity(path: Path) -> Identity:
    try:
        content = json.loads(path.read_text())
        format_, id, adopts = content["format"], content["identity"], bool(content.get("adopts", False))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unreadable(path) from None
    if isinstance(format_, int) and format_ > FORMAT:
        raise ConfigError(
            f"a newer Homeostat wrote this file (format {format_}; this one reads {FORMAT})",
            where=str(path),
            fix="upgrade homeostat",
        )
    if format_ != FORMAT or not isinstance(id, str) or not _ID.fullmatch(id):
        raise _unreadable(path)
    return Identity(id, adopts)


def _unreadable(path: Path) -> ConfigError:
    return ConfigError(
        "the identity of this application cannot be read",
        where=str(path),
        fix="restore the file from a backup, or delete it to make this a new application",
    )


def _write_once(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.new")
    with temporary.open("w") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)  # fails if another process was quicker
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        temporary.replace(path)
        return
    temporary.unlink()
