"""Signs the messages to a webhook, so that the receiver can detect forgeries and replays."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from homeostat.core.errors import ConfigError
from homeostat.web.private_files import read_private

HEADER = "Homeostat-Signature"
SHORTEST_SECRET = 16


def signature(keys: Sequence[str], at_s: int, body: bytes) -> str:
    """The value of the header: the time, and a signature with each secret, so that one can be replaced by another.

    >>> signature(["a secret of sixteen"], 1700000000, b"{}")[:30]
    't=1700000000,v1=4fb4bee9402e5d'
    """
    signed = b"%d." % at_s + body
    digests = [hmac.new(key.encode(), signed, hashlib.sha256).hexdigest() for key in keys]
    return ",".join([f"t={at_s}", *(f"v1={digest}" for digest in digests)])


def read_secrets(path: Path) -> list[str]:
    """One secret per line, in a file that only its owner can read."""
    lines = read_private(path, "secrets").split()
    if not lines or min(map(len, lines)) < SHORTEST_SECRET:
        raise ConfigError(
            "a secret is missing or too short",
            where=str(path),
            fix=f"write lines of at least {SHORTEST_SECRET} letters",
        )
    return lines


def own_secret(path: Path) -> Path:
    """The user's own file, made once."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
    except FileExistsError:
        pass
    except OSError as error:
        raise ConfigError(
            f"the secret for webhooks cannot be kept: {error.strerror}",
            where=str(path),
            fix="use --webhook-secret FILE",
        ) from error
    return path
