"""Plug-ins for one command join those of the configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.cli.plugin_options import load_plugins
from homeostat.core.errors import ConfigError

OWN = """
import numpy as np

class First:
    name = "first"

    def ahead(self, history, steps):
        return np.zeros(steps)

class Second(First):
    name = "second"
"""


def test_configured_plug_ins_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("forecasters_for_options.py").write_text(OWN)
    Path("homeostat.toml").write_text('[plugins]\nforecasters = ["forecasters_for_options:First"]\n')
    parts = load_plugins("forecasters", ["forecasters_for_options:Second"])
    assert [part.name for part in parts] == ["first", "second"]
    with pytest.raises(ConfigError, match="no_such_module"):
        load_plugins("forecasters", ["no_such_module:Thing"])
