"""E6 on real Spark: a key with 20, 50, then 70 % of the rows is named and spread, and no row is lost or doubled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.core.actions import ADJUST_SKEW
from homeostat.core.causes import DATA_SKEW
from homeostat.core.configuration import EXECUTORS_KNOB, SPREAD, Knob
from homeostat.lab.experiment import Trial, TrialResult
from homeostat.lab.load_profile import HOT_WORD, Profile
from homeostat.lab.wordcount import NAME, specification
from homeostat.sim.scenario.spec import WorkloadSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("google.protobuf", reason="Spark's transformWithState in Python needs protobuf")
pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("two_executors")]

SLOTS = 4
TRIGGER_S, LOAD_PER_S, STEP_S = 6.0, 2_000.0, 120.0
SHARES = (0.2, 0.5, 0.7)
QUICK = {
    "loop": {"settle": "20 s", "patience": "20 s", "catch_up": "1 min"},
    "guards": {"cooldown": "5 s", "cooldown_shrink": "1 h", "confirm": "1 h"},
}


@pytest.fixture(scope="module")
def result(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TrialResult:
    home: Path = tmp_path_factory.mktemp("hot")
    hot = tuple((round(number * STEP_S * LOAD_PER_S), share) for number, share in enumerate(SHARES))
    spec = specification(
        Profile(WorkloadSpec("constant", LOAD_PER_S), keys=200, zipf=0.0, hot=hot),
        home / "ledger",
        own_state=True,
        wait_ms=1.2,
        trigger_s=TRIGGER_S,
        executors=SLOTS,
        source_partitions=SLOTS,
        state_partitions=SLOTS,
        rows_per_trigger=round(2 * TRIGGER_S * LOAD_PER_S),
    )
    return Trial(spark, home / "application", spec, settings=QUICK).run(len(SHARES) * STEP_S)


def test_the_hot_key_is_named_and_spread_once(result: TrialResult) -> None:
    spread = [record for record in result.of("action") if record.body["kind"] == ADJUST_SKEW]
    assert len(spread) == 1
    assert spread[0].body["cause"] == DATA_SKEW
    assert result.final[Knob(SPREAD, f"{NAME}/count")] == result.final[EXECUTORS_KNOB]
    named = [record for record in result.of("diagnosis") if record.body.get("cause") == DATA_SKEW]
    assert any(HOT_WORD in str(record.body["evidence"]) for record in named)


def test_every_share_is_healed(result: TrialResult) -> None:
    for number in range(len(SHARES)):
        end_s = result.started_s + (number + 1) * STEP_S
        late = [record for record in result.batches if end_s - STEP_S / 3 < record.at_s <= end_s]
        pending = late[-1].body["pending_rows"]
        assert isinstance(pending, float)
        assert pending <= 3 * TRIGGER_S * LOAD_PER_S


def test_every_row_counts_once(result: TrialResult) -> None:
    assert result.rows > 0
    assert result.differences == ()
