"""`homeostat config check` and `homeostat config show`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Homeostat = Callable[..., Any]


@pytest.mark.slow
def test_config_check_and_show(homeostat: Homeostat, tmp_path: Path) -> None:
    (tmp_path / "homeostat.toml").write_text("[guards]\nlargest_change = 3.0\n")
    result = homeostat("config", "check", "homeostat.toml")
    assert (result.code, result.out) == (0, "homeostat.toml: ok\n")
    assert homeostat("config", "check", "homeostat.toml", "--json").json == {"file": "homeostat.toml", "ok": True}
    (tmp_path / "wrong.toml").write_text("[guards]\nlargest_chnge = 3.0\n")
    result = homeostat("config", "check", "wrong.toml")
    assert result.code == 2
    assert "wrong.toml:2" in result.err
    assert "largest_change" in result.err
    entries = {
        entry["key"]: entry for entry in homeostat("config", "show", "--config", "homeostat.toml", "--json").json
    }
    assert entries["guards.largest_change"]["value"] == 3.0
    assert "homeostat.toml" in entries["guards.largest_change"]["origin"]
    assert entries["guards.cooldown"]["origin"] == "default"
    assert "guards.largest_change" in homeostat("config", "show").out
