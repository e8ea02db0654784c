"""Keys that fall on two of eight partitions, on real Spark: seen, looked at, and moved to where they balance."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.actions import ADJUST_SKEW
from homeostat.core.causes import HASH_IMBALANCE
from homeostat.core.configuration import STATE_PARTITIONS, Knob
from homeostat.core.objective import Objective
from homeostat.core.records import Record
from homeostat.lab.load_profile import Profile
from homeostat.lab.source_registration import FORMAT
from homeostat.policies import registry
from homeostat.runtime.batch_lines import Samples
from homeostat.runtime.loop_thread import Loop
from homeostat.runtime.manager import Manager
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.application import Application
from homeostat.spark.pipeline import Context, Pipeline
from homeostat.store.in_memory import MemoryStore

if TYPE_CHECKING:
    from pandas import DataFrame as Pandas
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("two_executors")]
NAME = "keyed"
STATE = Knob(STATE_PARTITIONS, NAME)
PARTITIONS, CROWDED, KEYS, EXECUTORS = 8, 2, 1000, 4
RATE_PER_S, TRIGGER_S, WAIT_S = 500.0, 6.0, 0.012
ROWS_PER_TRIGGER = int(RATE_PER_S * TRIGGER_S)  # so that batches before and after have the same rows
LIMIT_S = 420.0
AFTER = 5
QUICK = {"loop": {"settle": "20 s"}, "guards": {"cooldown": "4 s", "cooldown_shrink": "600 s", "confirm": "600 s"}}


def crowded_keys(spark: SparkSession) -> list[int]:
    """Numbers whose hash puts them on the first two of eight partitions."""
    rows = spark.range(10_000).where(f"pmod(hash(id), {PARTITIONS}) < {CROWDED}").limit(KEYS).collect()
    return [int(row["id"]) for row in rows]


def waiting(seconds: float) -> Callable[[Iterator[Pandas]], Iterator[Pandas]]:
    """Work on what a key has become, in the stage that has the state, and however many cores there are."""

    def wait_for_each(batches: Iterator[Pandas]) -> Iterator[Pandas]:
        for batch in batches:
            for _ in range(len(batch)):
                time.sleep(seconds)
            yield batch

    return wait_for_each


def pipeline(keys: Sequence[int]) -> Pipeline:
    listed = ", ".join(f"{key}L" for key in keys)
    profile = Profile(WorkloadSpec(rate_per_s=RATE_PER_S), keys=2000, zipf=0.0)

    def build(ctx: Context) -> Any:
        lines = ctx.read_stream(FORMAT).option("profile", profile.to_json()).load()
        keyed = lines.selectExpr(f"element_at(array({listed}), 1 + cast(pmod(row, {KEYS}) AS INT)) AS key")
        counts = keyed.groupBy("key").count().mapInPandas(waiting(WAIT_S), "key BIGINT, count BIGINT")
        return counts.writeStream.outputMode("update").format("noop")

    start = {
        "executors": EXECUTORS,
        "source_partitions": 2,
        "state_partitions": PARTITIONS,
        "rows_per_trigger": ROWS_PER_TRIGGER,
    }
    return Pipeline(NAME, build, Objective(), TRIGGER_S, start)


def regulated(spark: SparkSession, directory: Path) -> MemoryStore:
    """Until an action was taken and so many batches were done after it."""
    store, complaints = MemoryStore(), list[str]()
    application = Application([pipeline(crowded_keys(spark))], directory)
    application.open(spark)
    samples = Samples()

    def managers() -> list[Manager]:
        engine = application.engine(NAME)
        return [
            Manager(
                engine,
                registry.build("provisioning", QUICK),
                store,
                NAME,
                mode="regulate",
                on_step=lambda _, state: store.append(NAME, samples.new(state)),
            )
        ]

    def done() -> bool:
        taken = store.records(NAME, kinds=("receipt",))
        later = [r for r in store.records(NAME, kinds=("batch",)) if taken and r.at_s > taken[0].at_s]
        return len(later) > AFTER

    loop = Loop(managers, complaints.append, 0.5)
    try:
        application.start()
        loop.start()
        deadline = time.monotonic() + LIMIT_S
        while not done() and time.monotonic() < deadline and application.running():
            time.sleep(0.2)
    finally:
        loop.stop()
        if loop.thread.is_alive():
            loop.thread.join(30.0)
        application.stop(session=False)
    assert complaints == []
    return store


def test_it_is_diagnosed_and_a_balanced_number_makes_the_batch_as_short_as_predicted(
    spark: SparkSession, workspace: Path
) -> None:
    store = regulated(spark, workspace / "app")

    causes = [r.body["cause"] for r in store.records(NAME, kinds=("diagnosis",)) if not r.body.get("over")]
    assert HASH_IMBALANCE in causes
    action = store.records(NAME, kinds=("action",))[0]
    receipt = store.records(NAME, kinds=("receipt",))[0]
    assert action.body["kind"] == ADJUST_SKEW
    assert receipt.body["applied"], receipt.body["detail"]
    prediction: Any = action.body["prediction"]
    assert "as its keys show" in prediction["text"]
    full = [r for r in store.records(NAME, kinds=("batch",)) if r.body["rows"] == ROWS_PER_TRIGGER]
    before_s = median([seconds(r) for r in full if r.at_s < action.at_s][-AFTER:])
    after_s = median([seconds(r) for r in full if r.at_s > receipt.at_s][1:])
    foretold_s = before_s * math.exp(-prediction["gain"])
    print(f"batch {before_s:.2f} s, foretold {foretold_s:.2f} s, then {after_s:.2f} s: {prediction['text']}")
    assert after_s == pytest.approx(foretold_s, rel=0.2)


def seconds(batch: Record) -> float:
    took = batch.body["seconds"]
    return float(took) if isinstance(took, float) else math.nan
