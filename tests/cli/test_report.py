"""`homeostat report`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Homeostat = Callable[..., Any]


@pytest.mark.slow
def test_the_report_is_one_file(homeostat: Homeostat, scenario: Path, tmp_path: Path) -> None:
    homeostat("sim", "run", scenario, "--store", "log.sqlite")
    answer = homeostat("report", "--store", "log.sqlite", "--out", "out/report.html", "--json").json
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert answer["bytes"] == len(text.encode())
    for words in ("small/provisioning/1", "worker hours", "Kept up", "scale-up: parallelism.count = 5", "helped"):
        assert words in text
    assert "src=" not in text.replace("src=\\", "")
    assert "://" not in text.split("</style>")[0]
