"""Source skew on real Spark: rows behind uneven partitions of a source are dealt anew as long as these are uneven."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.core.actions import GATHER
from homeostat.core.causes import NEEDLESS_SPREAD, SOURCE_SKEW
from homeostat.core.configuration import EXECUTORS_KNOB, SPREAD, Knob
from homeostat.core.records import ACTION, OUTCOME, ActionContent, with_content
from homeostat.core.trial import TAKEN_BACK
from homeostat.lab.experiment import Trial, TrialResult
from homeostat.lab.load_profile import Profile
from homeostat.lab.source_control import write_control
from homeostat.lab.wordcount import NAME, specification
from homeostat.sim.scenario.spec import WorkloadSpec
from support.judged import every_row_once, judge_attempts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("two_executors")]

SLOTS = 4
TRIGGER_S, LOAD_PER_S, FIRST_SHARE = 3.0, 1_400.0, 0.7
DEALT = Knob(SPREAD, f"{NAME}/deal")
LONGEST_S = 300.0  # it ends as soon as the loop has judged what it did
QUICK = {
    "loop": {"settle": "20 s", "patience": "30 s", "catch_up": "1 min"},
    "guards": {"cooldown": "5 s", "cooldown_shrink": "1 h", "confirm": "5 s"},
}

Run = Callable[[int], TrialResult]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    """Runs until so many actions are judged. After the first verdict the source's partitions are even."""
    numbers = count(1)

    def judged_actions(expected_count: int, trial: Trial) -> bool:
        outcomes = len(trial.records(OUTCOME))
        if outcomes:
            write_control(trial.application.control(NAME), first_share=0.0)
        return outcomes >= expected_count

    def start(actions: int) -> TrialResult:
        home = tmp_path / f"attempt-{next(numbers)}"
        spec = specification(
            Profile(WorkloadSpec("constant", LOAD_PER_S), keys=200),
            home / "ledger",
            trigger_s=TRIGGER_S,
            executors=SLOTS,
            source_partitions=SLOTS,
            first_share=FIRST_SHARE,
            rows_per_trigger=round(2 * TRIGGER_S * LOAD_PER_S),
        )
        trial = Trial(spark, home / "application", spec, settings=QUICK)
        return trial.run(LONGEST_S, until=partial(judged_actions, actions))

    return start


def actions_of(result: TrialResult) -> list[tuple[str, str]]:
    return [(str(record.body["kind"]), str(record.body["cause"])) for record in result.of(ACTION)]


def deals_the_rows(result: TrialResult) -> bool:
    """Whether the first action deals the rows anew, alone or as a part of a plan that also mends another cause."""
    action = next(action for _, action in with_content(result.of(ACTION), ActionContent))
    return str(DEALT) in action.patch and SOURCE_SKEW in action.cause


def test_the_rows_of_an_uneven_source_are_dealt_to_all_slots(run: Run) -> None:
    """Beside other tests, the machine can slow down while the action is judged. It must not be taken back for that."""

    def judgement(result: TrialResult) -> None:
        assert deals_the_rows(result)
        assert result.verdicts[0] not in TAKEN_BACK, [record.text for record in result.of(OUTCOME)]
        assert result.final[DEALT] == result.final[EXECUTORS_KNOB] >= SLOTS

    judge_attempts(lambda: run(1), data=every_row_once, judgement=judgement)


def test_they_stay_where_they_are_read_when_it_is_even_again(run: Run) -> None:
    def judgement(result: TrialResult) -> None:
        assert result.verdicts[0] == "helped", [record.text for record in result.of(OUTCOME)]
        assert deals_the_rows(result)
        assert actions_of(result)[1:] == [(GATHER, NEEDLESS_SPREAD)]
        assert result.final[DEALT] == 1

    judge_attempts(lambda: run(2), data=every_row_once, judgement=judgement)
