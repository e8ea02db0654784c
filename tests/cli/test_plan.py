"""`homeostat plan`, on a log, an event log and a simulation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.paths import RECORDED as LOGS

Homeostat = Callable[..., Any]


RECORDED = LOGS / "wordcount.jsonl"


@pytest.mark.slow
def test_a_plan_tells_why_the_others_lost(homeostat: Homeostat, batches: Path) -> None:
    result = homeostat("plan", "--scenario", batches, "--rate", "3k", "--confidence", "95 %")
    assert result.code == 0
    assert "executors.app 4 →" in result.out
    assert "chosen" in result.out
    assert "rows/s" in result.out
    answer = homeostat("plan", "--scenario", batches, "--rate", "3k", "--json").json
    assert answer["holds"]
    assert [each["lost"] for each in answer["candidates"]].count("") == 1
    assert answer["change"]["executors.app"] > 4


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
    result = homeostat("plan", "--scenario", batches, "--proposer", "greedy:Greedy")
    assert result.code == 0
    assert "rejected, from greedy: executors.app = 99 is outside its bounds" in result.out
    assert "rejected, from greedy: raised RuntimeError: nothing else to offer" in result.out


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


@pytest.mark.slow
def test_schedulers_and_forecasters_of_ones_own_take_part_in_a_plan(homeostat: Homeostat, batches: Path) -> None:
    Path("own_planning.py").write_text(OWN, encoding="utf-8")
    wave = 'kind = "diurnal"\nnight = "500 /s"\npeak = "1500 /s"\nperiod = "1 h"\n'
    text = (
        batches.read_text(encoding="utf-8")
        .replace('kind = "constant"\nrate = "1000 /s"\n', wave)
        .replace('"10 min"', '"2 h"')
    )
    batches.write_text(text, encoding="utf-8")
    options = ("plan", "--scenario", batches, "--horizon", "10 min", "--json")
    named = ("--proposer", "own_planning:Generous", "--with", "own_planning:Seer")
    answer = homeostat(*options, *named).json
    assert [each["proposed_by"] for each in answer["candidates"]].count("generous") == 1
    Path("homeostat.toml").write_text(
        '[plugins]\nproposers = ["own_planning:Generous"]\nforecasters = ["own_planning:Seer"]\n', encoding="utf-8"
    )
    assert homeostat(*options).json == answer
    assert "seer" in answer["load"]


def test_a_plan_that_cannot_be_is_unhealthy(homeostat: Homeostat, batches: Path) -> None:
    result = homeostat("plan", "--scenario", batches, "--rate", "3k", "--cost-limit", 2)
    assert result.code == 3
    assert "No configuration meets the objective" in result.out


def test_a_plan_from_an_event_log_looks_at_what_arrived_in_it(homeostat: Homeostat) -> None:
    load = homeostat("plan", "--event-log", RECORDED, "--json").json["load"]
    assert "needs 1.04 h of history" in load
    assert homeostat("plan", "--event-log", RECORDED, "--rate", "100", "--json").json["load"] == (
        "The load is assumed to stay constant."
    )


@pytest.mark.slow
def test_a_plan_is_drawn_with_the_verdict_of_each_candidate(
    homeostat: Homeostat, batches: Path, scenario: Path, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="drawing requires matplotlib")
    picture = tmp_path / "plan.svg"
    options = ("--scenario", batches, "--rate", "3k", "--latency", "60 s")
    assert homeostat("plan", *options, "--picture", picture).code == 0
    drawn = picture.read_text(encoding="utf-8")
    for words in ("no change", "executors.app=", "chosen", "also meets the objective, but costs", "p95 latency in s"):
        assert words in drawn
    dataflow = homeostat("plan", "--scenario", scenario, "--rate", "90", "--picture", picture)
    assert "Picture:" in dataflow.err
    assert "p95 latency" not in picture.read_text(encoding="utf-8")
    assert homeostat("plan", *options, "--picture", "plan.gif").code == 2
