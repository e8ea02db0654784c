"""Answers of Spark's REST API as values."""

from __future__ import annotations

import math

from homeostat.spark.sense.rest_answers import Executor, Job, moment_s


def test_a_job_belongs_to_a_batch_by_its_description() -> None:
    answered = {
        "jobId": 3,
        "name": "start at NativeMethodAccessorImpl.java:0",
        "description": "counts\nid = 1-2\nrunId = 3-4\nbatch = 17",
        "submissionTime": "2026-11-15T05:01:33.172GMT",
        "stageIds": [10, 9],
        "jobGroup": "3-4",
        "status": "RUNNING",
    }
    job = Job.read(answered)
    assert (job.id, job.group, job.batch, job.query, job.stages, job.running) == (3, "3-4", 17, "counts", (9, 10), True)
    assert math.isnan(job.ended_s)
    assert Job.read({**answered, "completionTime": "2026-11-15T05:01:34.172GMT"}).ended_s - job.submitted_s == 1.0
    other = Job.read({**answered, "description": "batch = of cakes", "jobGroup": None})
    assert (other.batch, other.group) == (None, "")


def test_moments_are_read_in_both_spellings() -> None:
    assert moment_s("1970-01-01T00:01:00.500GMT") == moment_s("1970-01-01T00:01:00.500Z") == 60.5


def test_an_executor_in_a_standalone_cluster_keeps_the_address_of_its_host() -> None:
    answered = {"id": "1", "hostPort": "127.0.0.2:40000", "isActive": True, "totalCores": 2, "maxTasks": 2}
    executor = Executor.read(answered)
    assert (executor.id, executor.host, executor.slots, executor.alive) == ("1", "127.0.0.2", 2, True)
    assert all(map(math.isnan, (executor.heap_bytes, executor.heap_limit_bytes(0.6), executor.gc_s)))


def test_the_heap_of_an_executor_follows_from_what_spark_gives_to_its_caches() -> None:
    """From a real driver with 600 MB in local mode, of which its collector keeps 20 MB back."""
    answered = {
        "id": "driver",
        "hostPort": "127.0.0.1:40657",
        "isActive": True,
        "totalCores": 2,
        "maxTasks": 2,
        "totalGCTime": 3593,
        "memoryMetrics": {"usedOnHeapStorageMemory": 9048876, "totalOnHeapStorageMemory": 176160768},
        "peakMemoryMetrics": {"JVMHeapMemory": 324586664, "TotalGCTime": 3593},
    }
    executor = Executor.read(answered)
    assert (executor.heap_bytes, executor.gc_s) == (324586664.0, 3.593)
    assert executor.heap_limit_bytes(0.6) == 580 * 2**20


def test_a_job_has_the_name_that_the_user_gave_it_or_where_it_was_started() -> None:
    answered = {
        "jobId": 19,
        "name": "call at clientserver.py:644",
        "submissionTime": "2026-11-18T10:46:35.958GMT",
        "completionTime": "2026-11-18T10:46:36.043GMT",
        "stageIds": [40],
        "jobGroup": "run-1",
        "status": "SUCCEEDED",
    }
    assert Job.read({**answered, "description": "q\nbatch = 1"}).name == "call at clientserver.py:644"
    assert Job.read({**answered, "description": "my own text\nof two lines"}).name == "my own text"
    assert not Job.read(answered).broadcasts
    assert Job.read({**answered, "jobTags": ["broadcast exchange (runId 25c8)"]}).broadcasts
