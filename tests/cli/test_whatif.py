"""`homeostat whatif` and `homeostat plan`, on a log, an event log and a simulation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.paths import RECORDED as LOGS

Homeostat = Callable[..., Any]
RECORDED = LOGS / "wordcount.jsonl"


def test_a_question_about_a_simulation_is_answered(homeostat: Homeostat, batches: Path) -> None:
    result = homeostat("whatif", "--scenario", batches, "--rate", "2k", "--executors", 8, "--partitions", 48)
    assert result.code == 0
    for words in (
        "batch duration",
        "largest rate",
        "latency p50, p95, p99",
        "with more than",
        "unknown: the number of executors never changed",
    ):
        assert words in result.out


def test_too_few_executors_are_unhealthy_and_json_has_the_numbers(homeostat: Homeostat, batches: Path) -> None:
    result = homeostat("whatif", "--scenario", batches, "--executors", 1, "--json")
    assert result.code == 3
    now, then = result.json["now"], result.json["then"]
    assert now["stable"]
    assert not then["stable"]
    assert then["latency_s"]["p95"] is None
    assert then["throughput_per_s"] < 1000
    assert now["configuration"]["executors.app"] == 4
    assert set(then["critical_path_s"]) == {"driver", "lines", "count"}


@pytest.mark.slow
def test_a_picture_is_drawn(homeostat: Homeostat, batches: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="drawing requires matplotlib")
    assert homeostat("whatif", "--scenario", batches, "--picture", tmp_path / "p.svg").code == 0
    assert "executors" in (tmp_path / "p.svg").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rate", "lots"), "'lots' is not a rate"),
        (("--set", "parallelism.nothing=3"), "there is no knob 'parallelism.nothing'"),
        (("--set", "parallelism.count"), "such as parallelism.count=8"),
        (("--executors", "99"), "outside its bounds"),
        (("--rows-per-trigger", "10k"), "has no knob for rows_per_trigger"),
        (("--event-log", "x"), "two sources are given"),
    ],
)
def test_what_makes_no_sense_is_refused(
    homeostat: Homeostat, batches: Path, arguments: tuple[str, ...], words: str
) -> None:
    result = homeostat("whatif", "--scenario", batches, *arguments)
    assert result.code == 2
    assert words in result.err
