"""Observations from the event log of a real run, compared with those of the sensors that watched it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from homeostat.core.events import Observed
from homeostat.core.observation import Observation, TaskCosts, TaskFailure
from homeostat.spark.outside.event_log import OBSERVED_KINDS, EventLog
from homeostat.spark.outside.log_observations import LogObserver
from support import watched_run
from support.paths import RECORDED, ROOT

Observations = dict[tuple[str, int], Observation]


def logged(path: Path) -> Observations:
    observer = LogObserver()
    observations = list(observer.observations(EventLog(path, kinds=OBSERVED_KINDS).new_events()))
    assert observer.damaged_events == 0
    return {(each.flows[0].query, each.batch): each for each in observations}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Observations, Observations]:
    """What the sensors observed, and what the log says, by query and batch."""
    directory = tmp_path_factory.mktemp("watched")
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
    command = [sys.executable, watched_run.__file__, str(directory)]
    subprocess.run(["env", *(f"{name}={value}" for name, value in environment.items()), *command], check=True)
    events = pickle.loads((directory / "observations.pickle").read_bytes())
    observations = [event.observation for event in events if isinstance(event, Observed)]
    sensed = {(each.flows[0].query, each.batch): each for each in observations if each.tasks}
    assert {query for query, _ in sensed} == {watched_run.SORTING, watched_run.FAILING}
    return sensed, logged(directory / "events")


@pytest.mark.spark
def test_the_log_says_the_same_as_the_sensors(both: tuple[Observations, Observations]) -> None:
    sensed, from_log = both
    for key, observation in sensed.items():
        assert {name.partition("/")[2] for name in observation.tasks} == set(from_log[key].tasks), key
        for name, sample in observation.tasks.items():
            other = from_log[key].tasks[name.partition("/")[2]]
            assert sample.costs is not None
            assert other.costs is not None
            for each in fields(TaskCosts):
                values = (getattr(sample.costs, each.name), getattr(other.costs, each.name))
                np.testing.assert_allclose(*values, err_msg=f"{key} {name} {each.name}")
            np.testing.assert_allclose([sample.run_s, sample.finish_s], [other.run_s, other.finish_s], atol=1e-6)
            assert (sample.began_s, sample.ended_s) == pytest.approx((other.began_s, other.ended_s), abs=1e-6)
        assert len(observation.other_jobs) == len(from_log[key].other_jobs)


@pytest.mark.spark
def test_a_sort_in_the_sink_spills_and_its_rows_are_shuffled(both: tuple[Observations, Observations]) -> None:
    for observations in both:
        costs = [
            sample.costs
            for (query, _), observation in observations.items()
            if query == watched_run.SORTING
            for sample in observation.tasks.values()
            if sample.costs is not None
        ]
        assert sum(np.nansum(each.spilled_memory_bytes) for each in costs) > 0
        assert sum(np.nansum(each.spilled_disk_bytes) for each in costs) > 0
        assert sum(np.nansum(each.shuffle_read_bytes) for each in costs) > 0
        assert sum(np.nansum(each.shuffle_write_bytes) for each in costs) > 0
        assert all(np.nansum(each.cpu_s) > 0 for each in costs)


@pytest.mark.spark
def test_an_attempt_that_fails_is_reported_with_its_reason(both: tuple[Observations, Observations]) -> None:
    for observations in both:
        for observation in (each for (query, _), each in observations.items() if query == watched_run.FAILING):
            (failure,) = observation.failures
            assert (failure.partition, failure.count) == (0, 1)
            assert failure.reason == "ValueError: the first attempt fails"
            costs = observation.tasks[failure.component].costs
            assert costs is not None
            assert costs.attempts.tolist() == [2.0, 1.0]
            assert costs.failed_s[0] > costs.failed_s[1] == 0.0


@pytest.mark.spark
def test_a_job_of_the_sink_is_no_component_but_has_its_time(both: tuple[Observations, Observations]) -> None:
    for observations in both:
        for (query, _), observation in observations.items():
            names = {job.name for job in observation.other_jobs}
            assert names == ({"look something up"} if query == watched_run.SORTING else set())
            for job in observation.other_jobs:
                assert 0 <= job.began_s < job.ended_s <= observation.flows[0].seconds


@pytest.mark.spark
def test_files_that_the_sink_wrote_are_counted(both: tuple[Observations, Observations]) -> None:
    sensed, from_log = both
    written = [from_log[key].files for key in from_log if key[0] == watched_run.SORTING]
    assert {files.written for files in written} == {3.0}
    assert min(files.written_bytes for files in written) > 0
    file_counts = [each.files.written for (query, _), each in sensed.items() if query == watched_run.SORTING]
    assert {count for count in file_counts if count == count} == {3.0}, "of the first batch it is unknown"


@pytest.mark.spark
def test_the_driver_is_known_and_has_room(both: tuple[Observations, Observations]) -> None:
    sensed, from_log = both
    for key, observation in sensed.items():
        assert 0 < observation.driver.heap_bytes <= observation.driver.heap_limit_bytes
        assert observation.driver.heap_limit_bytes == pytest.approx(from_log[key].driver.heap_limit_bytes, rel=0.01)
        assert observation.workers.heap_limit_bytes.tolist() == from_log[key].workers.heap_limit_bytes.tolist()
    later = [observation for (_, batch), observation in sensed.items() if batch >= 2]
    assert all(observation.driver.gc_s >= 0 for observation in later)


@pytest.mark.spark
def test_stages_run_one_after_the_other_within_the_batch(both: tuple[Observations, Observations]) -> None:
    for observations in both:
        for observation in observations.values():
            spans = sorted((sample.began_s, sample.ended_s) for sample in observation.tasks.values())
            assert spans[0][0] > 0
            assert all(before[1] <= after[0] + 1e-6 for before, after in pairwise(spans))
            assert spans[-1][1] <= observation.flows[0].seconds


def test_a_log_of_two_queries() -> None:
    """A real log, without what is not read: `static` looks up a table in its sink, `failing` fails once in a batch."""
    observations = logged(RECORDED / "two_queries.jsonl")
    assert set(observations) == {(query, batch) for query in ("static", "failing") for batch in (0, 1)}
    static, failing = observations["static", 1], observations["failing", 1]
    assert set(static.tasks) == set(failing.tasks) == {"scan", "aggregate"}
    assert [(round(job.began_s, 3), round(job.ended_s, 3)) for job in static.other_jobs] == [
        (0.336, 0.364),
        (0.472, 0.557),
        (0.582, 0.602),
    ]
    assert (static.failures, failing.other_jobs, failing.losses) == ((), (), ())
    assert failing.failures == (TaskFailure("scan", 0, "ValueError: the first attempt fails"),)
    assert failing.workers.heap_bytes.tolist() == [324586664.0]
    assert failing.workers.heap_limit_bytes.tolist() == [580 * 2**20]
    assert failing.driver.heap_limit_bytes == 580 * 2**20
    assert failing.states["stateStoreSave"].update_s > 0
