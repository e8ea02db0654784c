"""A file with tokens or secrets is read only if nobody else can read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.web.private_files import read_private


def test_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("one")
    file.chmod(0o600)
    assert read_private(file, "tokens") == "one"
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="other users can read the tokens"):
        read_private(file, "tokens")
    with pytest.raises(ConfigError, match="the tokens cannot be read: FileNotFoundError"):
        read_private(tmp_path / "none", "tokens")
