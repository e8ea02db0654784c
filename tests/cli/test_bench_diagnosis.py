"""The command runs the bench and prints its figures."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from homeostat.cli.main import run


@pytest.mark.slow
def test_a_small_bench_prints_a_table_and_json(
    capsys: pytest.CaptureFixture[str], computed_once: Callable[[str], None]
) -> None:
    computed_once("homeostat.lab.bench.diagnosis.measure")
    assert run(["bench", "diagnosis", "--runs", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["policies"]) == {
        "provisioning",
        "provisioning.paper",
        "max-median",
        "sparkforensics",
    }
    assert set(result["beside"]) == {"provisioning.paper", "max-median", "sparkforensics"}
    assert result["policies"]["provisioning"]["clean_runs"] == 1, "the first run is clean"
    assert run(["bench", "diagnosis", "--runs", "1"]) == 0
    assert "clean runs with a diagnosis" in capsys.readouterr().out


def test_an_unknown_draw_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "diagnosis", "--draw", "narrow"]) == 2
    assert "usual, wide" in capsys.readouterr().err
