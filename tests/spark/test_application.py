"""Several queries in one application, and pipelines that do not start."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from homeostat.core.configuration import EXECUTORS_KNOB, STATE_PARTITIONS, Knob, Patch, diff
from homeostat.core.errors import ConfigError
from homeostat.core.events import Apply, EngineChanged, Event, Failure, Observed, Receipt
from homeostat.core.observation import FlowSample, Observation, SavepointSample
from homeostat.lab.ledger import check, committed_rows, recorded_rows
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import pipeline_of, specification
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.application import Application, checkpoint_locations
from homeostat.spark.engine import FencedError, QueryEngine
from homeostat.spark.pipeline import Context, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WaitUntil = Callable[[Callable[[], bool], str], None]
LiveExecutors = Callable[[], list[str]]
pytestmark = pytest.mark.usefixtures("two_executors")
LIMIT_S = 240.0
PROFILE = Profile(WorkloadSpec("constant", rate_per_s=200.0), keys=50)


def counting(name: str, home: Path) -> Pipeline:
    spec = specification(PROFILE, home / name, wait_ms=0.5, executors=1, state_partitions=2, source_partitions=4)
    return replace(pipeline_of(spec), name=name)


def differences(name: str, home: Path) -> list[str]:
    checkpoint = home / "kept" / "checkpoints" / name
    rows = max(committed_rows(checkpoint), recorded_rows(home / name, checkpoint))
    assert rows > 0
    return check(home / name, PROFILE, rows)


def command(engine: QueryEngine, id: str, patch: Patch) -> Apply:
    described = engine.describe()
    desired = described.configuration.patched(patch)
    steps = diff(described.configuration, desired, described.capabilities)
    return Apply(id, engine.now_s, desired, steps, LIMIT_S)


def pools(spark: SparkSession) -> set[str]:
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    stages: list[dict[str, Any]] = httpx.get(url, timeout=60.0).json()
    return {str(stage["schedulingPool"]) for stage in stages}


@pytest.mark.soak
def test_two_queries_share_the_application(
    spark: SparkSession, live_executors: LiveExecutors, tmp_path: Path, wait_until: WaitUntil
) -> None:
    remembered: list[Any] = []
    pipelines = [counting("left", tmp_path), counting("right", tmp_path)]
    application = Application(pipelines, tmp_path / "kept", remember=remembered.append)
    assert application.wanted_executors == 2
    application.open(spark)
    events: dict[str, list[Event]] = {"left": [], "right": []}
    try:
        application.start()
        engines = {name: application.engine(name) for name in events}
        observed = {name: engine.describe().configuration for name, engine in engines.items()}
        assert {name: each[EXECUTORS_KNOB] for name, each in observed.items()} == {"left": 1, "right": 1}
        assert Knob(STATE_PARTITIONS, "right") not in observed["left"].values
        assert {"left", "right"} <= pools(spark)

        # Each manager counts its commands for itself: both begin with the same id, at the same time.
        both = Patch({EXECUTORS_KNOB: 2, Knob(STATE_PARTITIONS, "left"): 3})
        engines["left"].apply(command(engines["left"], "a-1", both))
        engines["right"].apply(command(engines["right"], "a-1", Patch({EXECUTORS_KNOB: 3})))

        def receipts(name: str) -> list[Receipt]:
            events[name] += engines[name].wait(time.time())
            return [event for event in events[name] if isinstance(event, Receipt)]

        wait_until(lambda: bool(receipts("left") and receipts("right")), "both are answered")
        (left,), (right,) = receipts("left"), receipts("right")
        assert (left.command_id, left.applied, left.configuration[EXECUTORS_KNOB]) == ("a-1", True, 2), left.detail
        assert (right.command_id, right.applied, right.configuration[EXECUTORS_KNOB]) == ("a-1", True, 3), right.detail
        assert left.configuration[Knob(STATE_PARTITIONS, "left")] == 3
        assert len(live_executors()) == 5
        assert remembered[-1]["executors"] == {"left": 2, "right": 3}
        assert remembered[-1]["values"]["state_partitions.left"] == 3

        engine = application.engine("left")
        with pytest.raises(FencedError, match="another manager has taken over"):
            engines["left"].apply(command(engine, "a-2", Patch({EXECUTORS_KNOB: 1})))
        before = {name: application.queries[name].batches() for name in events}
        wait_until(lambda: all(application.queries[name].batches() > before[name] + 1 for name in events), "they go on")
    finally:
        application.stop(session=False)
    assert differences("left", tmp_path) == []
    assert differences("right", tmp_path) == []


def raises(ctx: Context) -> Any:
    raise ValueError("no such topic\nand more about it")


def refused_by_spark(ctx: Context) -> Any:
    return ctx.read_stream("rate").load().select("nothing")


def returns_a_frame(ctx: Context) -> Any:
    return ctx.read_stream("rate").load()


def starts_it(ctx: Context) -> Any:
    return ctx.read_stream("rate").load().writeStream.format("noop").start()


def returns_nothing(ctx: Context) -> Any:
    return None


def takes_what_is_there(ctx: Context) -> Any:
    return ctx.read_stream("rate").load().writeStream.format("noop").trigger(availableNow=True)


def runs_once(ctx: Context) -> Any:
    return ctx.read_stream("rate").load().writeStream.format("noop").trigger(once=True)


def has_a_checkpoint(ctx: Context) -> Any:
    return ctx.read_stream("rate").load().writeStream.format("noop").option("CheckpointLocation", "/data/words")


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (raises, f"{__file__}:{raises.__code__.co_firstlineno + 1} raises ValueError: no such topic"),
        (refused_by_spark, f"{__file__}:{refused_by_spark.__code__.co_firstlineno + 1} raises AnalysisException: "),
        (returns_a_frame, "the function returns DataFrame, not a writer (return df.writeStream…, without start())"),
        (returns_nothing, "the function returns NoneType, not a writer"),
        (starts_it, "the function returns StreamingQuery, not a writer"),
        (takes_what_is_there, "the trigger availableNow ends the query"),
        (runs_once, "the trigger once ends the query"),
        (has_a_checkpoint, "the function sets checkpointLocation to /data/words, but Homeostat keeps the checkpoint"),
    ],
)
def test_a_pipeline_that_cannot_be_started_is_reported_in_one_line(
    spark: SparkSession, tmp_path: Path, build: Callable[[Context], Any], what: str
) -> None:
    application = Application([Pipeline("words", build)], tmp_path)
    application.open(spark)
    with pytest.raises(ConfigError) as refused:
        application.start()
    application.stop(session=False)
    for query in spark.streams.active:
        query.stop()
    assert refused.value.line.startswith(f"query words: cannot start: {what}")
    assert "\n" not in refused.value.line


def test_a_checkpoint_of_another_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    def other(ctx: Context) -> Any:
        rows = ctx.read_stream("rate").option("rowsPerSecond", 10).load()
        return rows.groupBy("value", "timestamp").count().writeStream.outputMode("update").format("noop")

    first = Application([replace(counting("words", tmp_path), start={})], tmp_path / "kept")
    first.open(spark)
    first.start()
    first.stop(session=False)
    second = Application([Pipeline("words", other)], tmp_path / "kept")
    second.open(spark)
    with pytest.raises(ConfigError) as refused:
        second.start()
    second.stop(session=False)
    assert str(tmp_path / "kept" / "checkpoints" / "words") in refused.value.line
    assert "query words: " in refused.value.line
    assert "its own" in refused.value.line
    assert "\n" not in refused.value.line
    assert spark.streams.active == []


def test_the_knobs_of_an_earlier_life_are_taken_up(tmp_path: Path) -> None:
    remembered = {"executors": {"words": 5, "gone": 3}, "values": {"state_partitions.words": 7}}
    application = Application([counting("words", tmp_path)], tmp_path / "kept", remembered)
    assert application.wanted_executors == 5


def test_a_receipt_and_a_change_survive_a_full_disk_and_a_driver_that_does_not_answer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk_full, kept = [True], list[Any]()

    def remember(knobs: Any) -> None:
        if disk_full[0]:
            raise OSError(28, "No space left on device")
        kept.append(knobs)

    application = Application([counting("left", tmp_path)], tmp_path / "kept", remember=remember)
    application.open(spark)
    engine = application.engine("left")
    request = application._shares.request("left", command(engine, "a-1", Patch({EXECUTORS_KNOB: 3})))
    application._route(Receipt(request.id, engine.now_s, request.desired))
    receipt, failure = engine.wait(engine.now_s)
    assert isinstance(receipt, Receipt)
    assert (receipt.command_id, receipt.configuration[EXECUTORS_KNOB]) == ("a-1", 3)
    assert isinstance(failure, Failure)
    assert "No space left" in failure.error
    disk_full[0] = False
    with monkeypatch.context() as patch:
        patch.setattr(application, "_topology", lambda query: 1 / 0)
        application._on_change("executor 1 was lost")
    application._route(Failure("a sensor", "no answer", engine.now_s))
    events = engine.wait(engine.now_s)
    assert [event.reason for event in events if isinstance(event, EngineChanged)] == ["executor 1 was lost"]
    assert kept[-1]["executors"] == {"left": 3}


def test_an_observation_tells_of_the_disks_and_of_the_savepoints_of_its_query(
    spark: SparkSession, tmp_path: Path
) -> None:
    application = Application([counting("left", tmp_path)], tmp_path / "kept")
    application.open(spark)
    engine = application.engine("left")
    saved = Path(f"{checkpoint_locations(application)['left']}.savepoints") / "batch-1"
    saved.mkdir(parents=True)
    (saved / "manifest.json").write_text("{}")
    application._route(Observed(Observation(1.0, 1.0, 1, (FlowSample("source", "left"),))))
    (event,) = engine.wait(engine.now_s)
    assert isinstance(event, Observed)
    assert {use for disk in event.observation.disks for use in disk.uses} == {"checkpoints", "temporary files"}
    assert event.observation.savepoints == SavepointSample(str(saved.parent), 1, 2.0)
