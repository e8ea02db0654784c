"""The bound on the rows of a batch: never below twice what the objective needs, and never other than it is shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.configuration import ROWS_PER_TRIGGER, TRIGGER_S, Knob
from homeostat.core.objective import Objective
from homeostat.lab import source
from homeostat.lab.load_profile import Profile
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.act.admission import written_values
from homeostat.spark.application import Application
from homeostat.spark.pipeline import Context, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROFILE = Profile(WorkloadSpec("constant", rate_per_s=2000.0), keys=50)
ROWS, TRIGGER = Knob(ROWS_PER_TRIGGER, "words"), Knob(TRIGGER_S, "words")
WaitUntil = Callable[[Callable[[], bool], str], None]
WANTED = Objective(throughput_per_s=1000.0)


def pipeline(**start: int) -> Pipeline:
    return Pipeline("words", lambda ctx: None, WANTED, start=start)


def test_the_default_bound_is_twice_what_the_objective_needs_in_the_trigger_of_the_writer() -> None:
    assert written_values(pipeline(), 60.0, {ROWS: 20_000}) == {TRIGGER: 60.0, ROWS: 120_000}
    assert written_values(pipeline(), 2.0, {ROWS: 20_000}) == {TRIGGER: 2.0, ROWS: 4_000}
    assert written_values(pipeline(), 0.0, {ROWS: 20_000}) == {TRIGGER: 0.0, ROWS: 20_000}


def test_a_bound_that_was_chosen_stays() -> None:
    assert written_values(pipeline(rows_per_trigger=500), 60.0, {ROWS: 500}) == {TRIGGER: 60.0}
    assert written_values(pipeline(), 60.0, {ROWS: 700, TRIGGER: 30.0}) == {}
    assert written_values(pipeline(), math.nan, {ROWS: 20_000}) == {}


class Words:
    """A pipeline that takes what it is given, or sets a bound of its own."""

    def __init__(self, own: int | None = None) -> None:
        self._own = own

    def __call__(self, ctx: Context) -> Any:
        reader = ctx.read_stream("homeostat").option("profile", PROFILE.to_json())
        if self._own is not None:
            reader = reader.option("rowsPerTrigger", str(self._own))
        writer = reader.load().writeStream.format("noop")
        return writer.trigger(processingTime="3 seconds")


def largest_batch(application: Application) -> int:
    query = application.queries["words"].query
    assert query is not None
    return max((int(progress["numInputRows"]) for progress in query.recentProgress), default=0)


@pytest.mark.usefixtures("two_executors")
def test_the_bound_that_is_shown_is_the_one_that_holds(
    spark: SparkSession, tmp_path: Path, wait_until: WaitUntil
) -> None:
    """6,000 rows arrive in a trigger: the default lets them in, and the pipeline's own bound does not."""
    for own, bound, knob in ((None, 6_000, True), (500, 500, False)):
        remembered: list[Any] = []
        application = Application(
            [Pipeline("words", Words(own), WANTED)], tmp_path / str(bound), remember=remembered.append
        )
        application.open(spark)
        try:
            application.start()
            description = application.describe("words")
            assert description.configuration[ROWS] == bound
            assert description.configuration[TRIGGER] == 3.0
            assert (ROWS in description.capabilities.knobs) == knob
            assert ("rows_per_trigger.words" in remembered[-1]["values"]) == knob
            wait_until(lambda: largest_batch(application) == bound, "a batch is full")  # noqa: B023
        finally:
            application.stop(session=False)


@pytest.mark.usefixtures("two_executors")
def test_the_bound_of_a_query_that_was_handed_over_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    source.register(spark)
    reader = spark.readStream.format("homeostat").option("profile", PROFILE.to_json()).option("rowspertrigger", "700")
    query = reader.load().writeStream.format("noop").queryName("words").trigger(processingTime="3 seconds").start()
    application = Application.around(spark, [query], Objective(), tmp_path)
    try:
        application.start()
        description = application.describe("words")
        assert dict(description.configuration.values) | {ROWS: 700, TRIGGER: 3.0} == dict(
            description.configuration.values
        )
        assert ROWS not in description.capabilities.knobs
        assert description.capabilities.notes["words: rows per trigger"].startswith("700, set by the application")
    finally:
        application.stop(session=False)
        query.stop()
