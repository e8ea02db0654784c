"""Messages to a webhook are signed; the documentation shows how to verify them."""

from __future__ import annotations

import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from homeostat.core.errors import ConfigError
from homeostat.web.signatures import own_secret, read_secrets, signature
from support.paths import ROOT

SECRET = "a-secret-of-the-receiver"
BODY = b'{"run": "app/words"}'


def verify(*arguments: Any) -> bool:
    """The receiver's function, as docs/security.md shows it."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    names: dict[str, Any] = {}
    exec(code, names)
    return bool(names["is_genuine"](*arguments))


def test_the_documented_receiver_accepts_what_is_signed() -> None:
    now_s = int(time.time())
    assert verify(SECRET, signature([SECRET], now_s, BODY), BODY)
    assert verify(SECRET, signature(["another-secret-older", SECRET], now_s, BODY), BODY), "while it is replaced"


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (signature([SECRET], int(time.time()), BODY), b'{"run": "other"}'),
        (signature(["another-secret-here"], int(time.time()), BODY), BODY),
        (signature([SECRET], int(time.time()) - 3_600, BODY), BODY),
        (signature([SECRET], int(time.time()) - 3_600, BODY).replace("t=", "t=9"), BODY),
        ("", BODY),
        ("t=,v1=", BODY),
        ("nonsense", BODY),
    ],
)
def test_it_refuses_forgeries_and_replays(header: str, body: bytes) -> None:
    assert not verify(SECRET, header, body)


def test_the_own_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = own_secret(tmp_path / "state" / "secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_secrets(own_secret(path)) == read_secrets(path)


@pytest.mark.parametrize(
    ("text", "mode", "what"),
    [
        (f"{SECRET}\n", 0o644, "other users can read the secrets"),
        ("short\n", 0o600, "missing or too short"),
        ("", 0o600, "missing or too short"),
    ],
)
def test_secrets_that_protect_nothing_are_refused(tmp_path: Path, text: str, mode: int, what: str) -> None:
    path = tmp_path / "secret"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(ConfigError, match=what):
        read_secrets(path)
