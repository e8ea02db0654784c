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
    assert Executor.read(answered) == Executor("1", "127.0.0.2", 2, True)
