"""The sensors on a real query of the test session, seen through a proxy that can misbehave."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.cli.watch import batch_line
from homeostat.core.configuration import Knob
from homeostat.core.events import Event, Failure, Observed, UnderWay
from homeostat.core.observation import Observation
from homeostat.lab.faults import hang_while
from homeostat.lab.load_profile import Profile
from homeostat.lab.rest_proxy import Behaviour, Proxy
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.outside.remote_application import WatchedApplication
from homeostat.spark.sense.application_sensors import Sensors
from homeostat.spark.sense.declared_steps import DeclaredSteps
from homeostat.spark.sense.query_handle import QueryHandle, handle_of
from homeostat.spark.sense.rest_client import RestClient

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Wait = Callable[[Callable[[], bool], str], None]
RATE_PER_S = 200.0
SOURCE_PARTITIONS = 2
STATE_PARTITIONS = 3
TRIES = 5
PATIENT_S = 60.0  # the machine may be busy with other tests; only the tests about silence need an impatient client


def discard(frame: DataFrame, batch: int) -> None:
    frame.write.format("noop").mode("append").save()


class Watched:
    """A word count that can be restarted, and everything its sensors said."""

    def __init__(self, spark: SparkSession, directory: Path, wait: Wait) -> None:
        from homeostat.lab.source import register

        register(spark)
        self.spark, self.directory, self._wait = spark, directory, wait
        self.hang = directory / "hang"
        self.events: list[Event] = []
        self.changes: list[str] = []
        self.handles: list[QueryHandle] = []
        self.query: StreamingQuery | None = None

    def start(self, parallelism: int) -> None:
        profile = Profile(WorkloadSpec(rate_per_s=RATE_PER_S), keys=50)
        lines = (
            self.spark.readStream.format("homeostat")
            .option("profile", profile.to_json())
            .option("partitions", SOURCE_PARTITIONS)
            .option("rowsPerTrigger", 1000)
            .load()
        )
        counts = lines.repartition(parallelism).selectExpr("upper(word) AS word").groupBy("word").count()
        writer = (
            counts.writeStream.queryName("words")
            .outputMode("update")
            .option("checkpointLocation", str(self.directory / "checkpoint"))
            .foreachBatch(hang_while(self.hang, discard))
            .trigger(processingTime="1 second")
        )
        self.query = self._started(writer)
        self.handles = [handle_of(self.query, "words", 1.0, DeclaredSteps(("shout",)))]

    def _started(self, writer: DataStreamWriter) -> StreamingQuery:
        """Spark gives the process of a Python source ten seconds to start, which a busy machine may not manage."""
        for _ in range(TRIES):
            query = writer.start()
            self._wait(lambda: query.lastProgress is not None or query.exception() is not None, "a batch ended")  # noqa: B023
            if query.exception() is None:
                return query
        raise AssertionError(f"the query failed {TRIES} times: {query.exception()}")

    def stop(self) -> None:
        self.hang.unlink(missing_ok=True)
        if self.query is not None:
            self.query.stop()

    @property
    def observations(self) -> list[Observation]:
        return [event.observation for event in list(self.events) if isinstance(event, Observed)]

    @property
    def failures(self) -> list[Failure]:
        return [event for event in list(self.events) if isinstance(event, Failure)]

    def next(self, good: Callable[[Observation], bool], what: str) -> Observation:
        """The first observation from now on that is `good`."""
        old_count = len(self.observations)

        def happened() -> bool:
            assert self.query is not None
            assert self.query.exception() is None, "the query failed"
            return any(map(good, self.observations[old_count:]))

        self._wait(happened, what)
        return next(filter(good, self.observations[old_count:]))

    def batches_done(self) -> int:
        last: Any = self.query.lastProgress if self.query is not None else None
        return int(last["batchId"]) if last else -1


@pytest.fixture(scope="module")
def proxy(spark: SparkSession) -> Iterator[Proxy]:
    with Proxy(str(spark.sparkContext.uiWebUrl)) as running:
        yield running


@pytest.fixture(scope="module")
def watched(
    spark: SparkSession, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory, wait_until: Wait
) -> Iterator[Watched]:
    spark.conf.set("spark.sql.shuffle.partitions", str(STATE_PARTITIONS))
    watched = Watched(spark, tmp_path_factory.mktemp("watched"), wait_until)
    watched.start(parallelism=2)
    yield watched
    watched.stop()
    spark.conf.unset("spark.sql.shuffle.partitions")


@pytest.fixture(scope="module")
def sensors(watched: Watched, proxy: Proxy) -> Iterator[Sensors]:
    rest = RestClient(proxy.url, first_timeout_s=PATIENT_S, timeout_s=PATIENT_S)
    sensors = Sensors(
        rest, lambda: watched.handles, watched.events.append, spark=watched.spark, on_change=watched.changes.append
    )
    sensors.start()
    yield sensors
    sensors.stop()
    rest.close()


def complete(observation: Observation) -> bool:
    return observation.flows[0].rows > 0 and len(observation.tasks) == 3


def test_every_row_of_a_batch_is_found_at_its_instances(watched: Watched, sensors: Sensors) -> None:
    observation = watched.next(complete, "a batch with rows was observed")
    (flow,) = observation.flows
    scan, shout, state = (observation.tasks[name] for name in ("scan", "shout", "aggregate"))
    assert (scan.instances, shout.instances, state.instances) == (SOURCE_PARTITIONS, 2, STATE_PARTITIONS)
    assert scan.rows.sum() == shout.rows.sum() == flow.rows
    assert scan.rows_out.sum() == flow.rows
    assert shout.rows_out.sum() == state.rows.sum()
    for tasks in (scan, shout, state):
        assert (tasks.run_s > 0).all()
        assert (tasks.finish_s >= tasks.run_s - 0.1).all()
        assert {observation.workers.ids[worker] for worker in tasks.worker} <= set(observation.workers.ids)
    assert observation.run == watched.handles[0].run_id
    assert 0 < flow.seconds <= observation.span_s + 0.01


def test_arrival_and_backlog_are_those_of_the_moment_the_batch_ended(watched: Watched, sensors: Sensors) -> None:
    observation = watched.next(complete, "a batch with rows was observed")
    (flow,) = observation.flows
    assert flow.arrival_per_s == pytest.approx(RATE_PER_S, rel=0.1)
    progress = next(p for p in watched.handles[0].recent_progress() if p["batchId"] == observation.batch)
    offset = progress["sources"][0]["endOffset"]
    arrived = RATE_PER_S * (observation.at_s - offset["started_s"])
    assert flow.pending_rows == pytest.approx(arrived - offset["row"], abs=2)
    assert flow.updated_keys == progress["stateOperators"][0]["numRowsUpdated"]
    assert flow.phases_s["addBatch"] == progress["durationMs"]["addBatch"] / 1000


def test_the_state_of_the_operator_is_seen_with_what_its_store_may_use(watched: Watched, sensors: Sensors) -> None:
    observation = watched.next(complete, "a batch with rows was observed")
    state = observation.states["stateStoreSave"]
    assert (state.backend, state.partitions) == ("rocksdb", STATE_PARTITIONS)
    assert 0 < state.updated_rows <= state.rows
    assert state.version == observation.batch + 1
    assert -1 <= state.snapshot_version <= state.version
    assert min(state.memory_bytes, state.disk_bytes, state.commit_s, state.stall_s) >= 0
    assert (state.limits.versions_per_snapshot, state.limits.maintenance_s) == (10.0, 60.0)


def test_the_executors_are_the_workers(
    watched: Watched, sensors: Sensors, live_executors: Callable[[], list[str]]
) -> None:
    observation = watched.next(complete, "a batch with rows was observed")
    assert set(observation.workers.ids) == set(live_executors())
    assert all(host.startswith("127.0.0.") for host in observation.workers.hosts)
    assert observation.workers.slots.tolist() == [1.0] * len(observation.workers.ids)


def test_the_topology_has_the_knobs_of_the_pipeline(watched: Watched, sensors: Sensors) -> None:
    watched.next(complete, "a batch with rows was observed")
    topology = sensors.topology()
    assert topology is not None
    assert {part.name: (part.inputs, part.partitions) for part in topology} == {
        "scan": ((), Knob("source_partitions", "words")),
        "shout": (("scan",), Knob("parallelism", "words/shout")),
        "aggregate": (("shout",), Knob("state_partitions", "words")),
    }
    assert watched.changes[0] == "the plan is known"


def test_a_batch_whose_sink_hangs_is_seen_while_it_does(watched: Watched, sensors: Sensors, wait_until: Wait) -> None:
    watched.next(complete, "a batch with rows was observed")
    watched.hang.touch()
    old_count = len(watched.events)

    def hanging() -> list[UnderWay]:
        events = [event for event in watched.events[old_count:] if isinstance(event, UnderWay)]
        return [event for event in events if event.batch > watched.batches_done()]

    wait_until(lambda: len(hanging()) >= 2, "the batch under way was seen twice")
    under_way = sensors.under_way()
    assert under_way is not None
    assert under_way.run == watched.handles[0].run_id
    wait_until(lambda: hanging()[-1].pending_rows > 0, "its backlog grew")
    watched.hang.unlink()
    observed = watched.next(lambda observation: observation.batch >= under_way.batch, "it ended after all")
    assert observed.batch >= under_way.batch


def test_names_stay_when_the_query_is_restarted_with_other_partitions(watched: Watched, sensors: Sensors) -> None:
    before = sensors.topology()
    watched.stop()
    watched.start(parallelism=4)
    observation = watched.next(lambda o: complete(o) and o.run == watched.handles[0].run_id, "a batch of the new run")
    assert {name: tasks.instances for name, tasks in observation.tasks.items()} == {
        "scan": SOURCE_PARTITIONS,
        "shout": 4,
        "aggregate": STATE_PARTITIONS,
    }
    assert sensors.topology() == before


def test_every_batch_is_observed_once_and_in_order(watched: Watched, sensors: Sensors) -> None:
    watched.next(complete, "a batch with rows was observed")
    for run in {observation.run for observation in watched.observations}:
        batches = [observation.batch for observation in watched.observations if observation.run == run]
        assert batches == list(range(batches[0], batches[-1] + 1))


def test_without_a_listener_batches_are_taken_from_what_the_query_remembers(
    watched: Watched, proxy: Proxy, wait_until: Wait
) -> None:
    events: list[Event] = []
    rest = RestClient(proxy.url, first_timeout_s=PATIENT_S, timeout_s=PATIENT_S)
    deaf = Sensors(rest, lambda: watched.handles, events.append)
    deaf.start()

    def observed() -> list[Observation]:
        return [event.observation for event in list(events) if isinstance(event, Observed)]

    since = watched.batches_done()
    wait_until(
        lambda: any(observation.batch > since and observation.tasks for observation in observed()),
        "a new batch was found",
    )
    deaf.stop()
    rest.close()
    batches = [observation.batch for observation in observed()]
    assert batches == list(range(batches[0], batches[-1] + 1))
    assert set(observed()[-1].tasks) <= {"stage", "stage-2", "stage-3", "stage-4"}


def test_an_executor_that_is_let_go_is_no_worker_while_its_process_ends(
    watched: Watched, sensors: Sensors, proxy: Proxy, wait_until: Wait
) -> None:
    wait_until(lambda: len(sensors.workers().ids) > 1, "the executors were seen")
    stay, leaving = sensors.workers().ids[:-1], sensors.workers().ids[-1]
    rest = RestClient(proxy.url, first_timeout_s=PATIENT_S, timeout_s=PATIENT_S)
    lets_go = Sensors(rest, lambda: watched.handles, lambda _: None, leaving=lambda: {leaving})
    lets_go.start()
    wait_until(lambda: bool(lets_go.workers().ids), "the executors were seen")
    lets_go.stop()
    rest.close()
    assert lets_go.workers().ids == stay


@pytest.mark.parametrize(
    "behaviour", [Behaviour.SILENT, Behaviour.GARBAGE, Behaviour.HALF, Behaviour.ERROR, Behaviour.LATE]
)
def test_a_rest_api_in_trouble_stops_no_batch_and_leaves_unknowns(
    watched: Watched, proxy: Proxy, wait_until: Wait, behaviour: Behaviour
) -> None:
    events: list[Event] = []
    rest = RestClient(proxy.url, first_timeout_s=0.5, timeout_s=0.5)
    impatient = Sensors(rest, lambda: watched.handles, events.append, spark=watched.spark)
    proxy.behave(behaviour, delay_s=30.0)
    impatient.start()

    def observed() -> list[Observation]:
        return [event.observation for event in list(events) if isinstance(event, Observed)]

    try:
        wait_until(lambda: len(observed()) >= 2, "two batches were observed")
        for observation in observed():
            assert not observation.tasks
            assert not observation.workers.ids
            assert math.isfinite(observation.flows[0].rows)
        assert all("sensor of" in failure.where for failure in events if isinstance(failure, Failure))
        failures = [(failure.where, failure.error) for failure in events if isinstance(failure, Failure)]
        assert failures
        assert len(failures) == len(set(failures))
    finally:
        proxy.behave(Behaviour.FAITHFUL)
        impatient.stop()
        rest.close()


def test_an_application_is_watched_from_outside(watched: Watched, spark: SparkSession, wait_until: Wait) -> None:
    application = WatchedApplication(
        RestClient(str(spark.sparkContext.uiWebUrl), first_timeout_s=PATIENT_S, timeout_s=PATIENT_S)
    )
    application.start()
    observations: list[Observation] = []

    def observed() -> bool:
        for query in application.queries():
            events = query.wait(0.0) if query.query == "words" else ()
            observations.extend(event.observation for event in events if isinstance(event, Observed))
        return any(observation.tasks for observation in observations)

    wait_until(observed, "a batch was seen over REST")
    described = next(query for query in application.queries() if query.query == "words").describe()
    application.stop()
    batch = next(observation for observation in observations if observation.tasks)
    (flow,) = batch.flows
    assert flow.rows > 0
    assert math.isfinite(flow.seconds)
    unknown = (flow.arrival_per_s, flow.pending_rows, flow.state_rows, flow.updated_keys, flow.watermark_gap_s)
    (state,) = batch.states.values()
    assert all(map(math.isnan, (*unknown, state.rows, state.memory_bytes, state.disk_bytes)))
    assert not flow.phases_s
    own = [name.rpartition("/")[2] for name in batch.tasks]
    assert all(name.startswith("stage") for name in own), "REST does not tell the operators of a stage"
    assert "arrival unknown, pending unknown" in batch_line("words", batch)
    assert set(batch.workers.ids) == set(application.sensors.workers().ids)
    assert described.configuration[Knob("executors", "app")] == len(batch.workers.ids)
    assert not described.capabilities.knobs


def test_the_command_ends_when_its_time_is_up(
    watched: Watched, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    from homeostat.cli.main import run

    assert run(["watch", str(spark.sparkContext.uiWebUrl), "--for", "1s", "--json"]) == 0
    for line in capsys.readouterr().out.splitlines():
        assert "kind" in json.loads(line)


def test_the_command_ends_with_the_application(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wait_until: Wait
) -> None:
    from homeostat.cli import main, watch

    monkeypatch.setattr(watch, "GONE_S", 2.0)
    with Proxy(str(spark.sparkContext.uiWebUrl)) as between:

        def go_away() -> None:
            wait_until(lambda: between.requests >= 5, "the application was asked")
            between.behave(Behaviour.ERROR)

        thread = threading.Thread(target=go_away)
        thread.start()
        assert main.run(["watch", between.url, "--json"]) == 1
        thread.join()
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "the application has ended" in line
    assert between.url in line


def test_stopped_sensors_leave_no_thread_and_hear_nothing(watched: Watched, proxy: Proxy, wait_until: Wait) -> None:
    events: list[Event] = []
    rest = RestClient(proxy.url)
    sensors = Sensors(rest, lambda: watched.handles, events.append, spark=watched.spark)
    before = {thread.name for thread in threading.enumerate()}
    sensors.start()
    wait_until(lambda: any(isinstance(event, Observed) for event in events), "a batch was observed")
    sensors.stop()
    rest.close()
    event_count, done = len(events), watched.batches_done()
    wait_until(lambda: watched.batches_done() >= done + 2, "two more batches ended")
    assert len(events) == event_count
    assert {name for name in {t.name for t in threading.enumerate()} - before if name.startswith("homeostat")} == set()
