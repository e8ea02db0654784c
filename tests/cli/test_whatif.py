"""`homeostat whatif` and `homeostat plan`, on a log, an event log and a simulation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.paths import RECORDED as LOGS

Homeostat = Callable[..., Any]
RECORDED = LOGS / "wordcount.jsonl"
BATCHES = """\
name = "batches"
title = "A word count in micro-batches"
engine = "microbatch"
duration = "10 min"

[microbatch]
trigger = "10 s"
executors = 4
max_executors = 30

[workload]
kind = "constant"
rate = "1000 /s"
noise = { sigma = 0.05 }

[[component]]
name = "lines"
kind = "source"
parallelism = 24
rate = "5 k/s"

[[component]]
name = "count"
inputs = ["lines"]
parallelism = 24
rate = "500 /s"
"""


@pytest.fixture
def batches(tmp_path: Path) -> Path:
    path = tmp_path / "batches.toml"
    path.write_text(BATCHES, encoding="utf-8")
    return path


def test_a_question_about_a_simulation_is_answered(homeostat: Homeostat, batches: Path) -> None:
    ran = homeostat("whatif", "--scenario", batches, "--rate", "2k", "--executors", 8, "--partitions", 48)
    assert ran.code == 0
    for words in (
        "batch duration",
        "largest rate",
        "latency p50, p95, p99",
        "with more than",
        "unknown: the number of executors never changed",
    ):
        assert words in ran.out


def test_too_few_executors_are_unhealthy_and_json_has_the_numbers(homeostat: Homeostat, batches: Path) -> None:
    ran = homeostat("whatif", "--scenario", batches, "--executors", 1, "--json")
    assert ran.code == 3
    now, then = ran.json["now"], ran.json["then"]
    assert now["stable"]
    assert not then["stable"]
    assert then["latency_s"]["p95"] is None
    assert then["throughput_per_s"] < 1000
    assert now["configuration"]["executors.app"] == 4
    assert set(then["critical_path_s"]) == {"driver", "lines", "count"}


def test_a_plan_tells_why_the_others_lost(homeostat: Homeostat, batches: Path) -> None:
    ran = homeostat("plan", "--scenario", batches, "--rate", "3k", "--confidence", "95 %")
    assert ran.code == 0
    assert "executors.app 4 →" in ran.out
    assert "chosen" in ran.out
    assert "rows/s" in ran.out
    found = homeostat("plan", "--scenario", batches, "--rate", "3k", "--json").json
    assert found["holds"]
    assert [each["lost"] for each in found["candidates"]].count("") == 1
    assert found["change"]["executors.app"] > 4


GREEDY = """\
from homeostat.core.configuration import EXECUTORS_KNOB, Patch


class Greedy:
    name = "greedy"

    def propose(self, question):
        yield question.model.configuration.patched(Patch({EXECUTORS_KNOB: 99}))
        raise RuntimeError("nothing else to offer")
"""


def test_a_plan_tells_what_a_scheduler_of_ones_own_proposed_in_vain(homeostat: Homeostat, batches: Path) -> None:
    Path("greedy.py").write_text(GREEDY, encoding="utf-8")
    ran = homeostat("plan", "--scenario", batches, "--proposer", "greedy:Greedy")
    assert ran.code == 0
    assert "rejected, from greedy: executors.app = 99 is outside its bounds" in ran.out
    assert "rejected, from greedy: raised RuntimeError: nothing else to offer" in ran.out


OWN = """
import math
import numpy as np
from homeostat.core.configuration import EXECUTORS_KNOB, Patch

class Generous:
    name = "generous"

    def propose(self, question):
        yield question.model.configuration.patched(Patch({EXECUTORS_KNOB: 29}))

class Seer:
    name = "seer"

    def ahead(self, history, steps):
        ends_s = history.end_s + history.step_s * (np.arange(steps) + 0.5)
        return 1000 - 500 * np.cos(ends_s / 3600 * 2 * math.pi)
"""


def test_schedulers_and_forecasters_of_ones_own_take_part_in_a_plan(homeostat: Homeostat, batches: Path) -> None:
    Path("own_planning.py").write_text(OWN, encoding="utf-8")
    wave = 'kind = "diurnal"\nnight = "500 /s"\npeak = "1500 /s"\nperiod = "1 h"\n'
    text = BATCHES.replace('kind = "constant"\nrate = "1000 /s"\n', wave).replace('"10 min"', '"3 h"')
    batches.write_text(text, encoding="utf-8")
    options = ("plan", "--scenario", batches, "--horizon", "10 min", "--json")
    named = ("--proposer", "own_planning:Generous", "--with", "own_planning:Seer")
    asked = homeostat(*options, *named).json
    assert [each["proposed_by"] for each in asked["candidates"]].count("generous") == 1
    Path("homeostat.toml").write_text(
        '[plugins]\nproposers = ["own_planning:Generous"]\nforecasters = ["own_planning:Seer"]\n', encoding="utf-8"
    )
    assert homeostat(*options).json == asked
    assert "seer" in asked["load"]


def test_a_plan_that_cannot_be_is_unhealthy(homeostat: Homeostat, batches: Path) -> None:
    ran = homeostat("plan", "--scenario", batches, "--rate", "3k", "--cost-limit", 2)
    assert ran.code == 3
    assert "No configuration meets the objective" in ran.out


def test_the_log_of_a_run_can_be_asked(homeostat: Homeostat) -> None:
    assert homeostat("sim", "run", "E7", "--store", "e7.sqlite").code == 0
    ran = homeostat("whatif", "--store", "e7.sqlite", "--set", "parallelism.count=10", "--json")
    assert ran.code == 3
    assert ran.json["then"]["utilisation"]["count"] > 1
    assert "taken to stay as it is" in homeostat("plan", "--store", "e7.sqlite").out
    planned = homeostat("plan", "--store", "e7.sqlite", "--rate", "500k/min", "--json").json
    assert 5 <= planned["best"]["configuration"]["parallelism.flatmap"] <= 6
    assert 10 <= planned["best"]["configuration"]["parallelism.count"] <= 11


def test_sparks_event_log_can_be_asked(homeostat: Homeostat) -> None:
    ran = homeostat("whatif", "--event-log", RECORDED, "--executors", 4, "--json")
    assert ran.code in (0, 3)
    assert ran.json["then"]["batch_s"]["p50"] > 0
    assert ran.json["then"]["configuration"]["executors.app"] == 4


def test_a_plan_from_an_event_log_looks_at_what_arrived_in_it(homeostat: Homeostat) -> None:
    told = homeostat("plan", "--event-log", RECORDED, "--json").json["load"]
    assert "needs 1.04 h of history" in told
    assert homeostat("plan", "--event-log", RECORDED, "--rate", "100", "--json").json["load"] == (
        "the load is taken to stay as it is"
    )


def test_a_picture_is_drawn(homeostat: Homeostat, batches: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="drawing requires matplotlib")
    assert homeostat("whatif", "--scenario", batches, "--picture", tmp_path / "p.svg").code == 0
    assert "executors" in (tmp_path / "p.svg").read_text(encoding="utf-8")


def test_a_plan_is_drawn_with_the_verdict_of_each_candidate(
    homeostat: Homeostat, batches: Path, scenario: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="drawing requires matplotlib")
    picture = tmp_path / "plan.svg"
    options = ("--scenario", batches, "--rate", "3k", "--latency", "60 s")
    assert homeostat("plan", *options, "--picture", picture).code == 0
    drawn = picture.read_text(encoding="utf-8")
    for words in ("as it is", "executors.app=", "chosen", "also meets the objective, but costs", "p95 latency in s"):
        assert words in drawn
    dataflow = homeostat("plan", "--scenario", scenario, "--rate", "90", "--picture", picture)
    assert "Picture:" in dataflow.err
    assert "p95 latency" not in picture.read_text(encoding="utf-8")
    assert homeostat("plan", *options, "--picture", "plan.gif").code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rate", "lots"), "'lots' is not a rate"),
        (("--set", "parallelism.nothing=3"), "there is no knob 'parallelism.nothing'"),
        (("--set", "parallelism.count"), "such as parallelism.count=8"),
        (("--executors", "99"), "outside its bounds"),
        (("--rows-per-trigger", "10k"), "has no rows_per_trigger"),
        (("--event-log", "x"), "two sources are given"),
    ],
)
def test_what_makes_no_sense_is_refused(
    homeostat: Homeostat, batches: Path, arguments: tuple[str, ...], words: str
) -> None:
    ran = homeostat("whatif", "--scenario", batches, *arguments)
    assert ran.code == 2
    assert words in ran.err


def test_a_run_without_a_model_says_so(homeostat: Homeostat) -> None:
    assert homeostat("whatif").code == 2
