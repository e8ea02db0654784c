"""Jobs and stages of batches, from a real log of two queries."""

from __future__ import annotations

from homeostat.spark.outside import event_log
from homeostat.spark.outside.event_log import OBSERVED_KINDS, Event, EventLog
from homeostat.spark.outside.logged_stages import LoggedStages
from support.paths import RECORDED

EVENTS: list[Event] = list(EventLog(RECORDED / "two_queries.jsonl", kinds=OBSERVED_KINDS).new_events())


def taken() -> tuple[LoggedStages, str]:
    """All events, and the run of the query that fails."""
    stages = LoggedStages()
    handlers = {
        event_log.QUERY_STARTED: stages.query_started,
        event_log.JOB_START: stages.job_started,
        event_log.JOB_END: stages.job_ended,
        event_log.STAGE_SUBMITTED: stages.stage_submitted,
        event_log.STAGE_COMPLETED: stages.stage_completed,
        event_log.TASK_END: stages.task_ended,
    }
    for event in EVENTS:
        if handler := handlers.get(event["Event"]):
            handler(event)
    (run,) = [event["runId"] for event in EVENTS if event.get("name") == "failing"]
    return stages, str(run)


def test_the_jobs_of_a_batch_have_the_stages_that_ran() -> None:
    stages, run = taken()
    (job,) = stages.of_batch(run, 1)
    assert not job.running
    assert job.ended_s > job.submitted_s
    scan, aggregate = stages.stage_runs([job])
    assert (scan.partitions, dict(scan.attempts), len(scan.failures)) == (2, {0: 2, 1: 1}, 1)
    assert dict(aggregate.attempts) == {0: 1, 1: 1}
    assert job.submitted_s <= scan.began_s < scan.ended_s <= aggregate.began_s < aggregate.ended_s <= job.ended_s
    assert stages.graph(scan.stage.id) is not None


def test_a_batch_that_was_observed_is_forgotten() -> None:
    stages, run = taken()
    (job,) = stages.of_batch(run, 1)
    stages.forget(run, 1)
    assert stages.of_batch(run, 0) == stages.of_batch(run, 1) == []
    assert stages.graph(job.stages[0]) is None


def test_a_job_with_a_group_of_its_own_still_belongs_to_its_query() -> None:
    stages = LoggedStages()
    (start,) = [event for event in EVENTS if event.get("name") == "failing"]
    stages.query_started(start)
    job = next(
        event
        for event in EVENTS
        if event["Event"] == event_log.JOB_START and event["Properties"]["spark.jobGroup.id"] == start["runId"]
    )
    properties = {**job["Properties"], "spark.jobGroup.id": "mine", "spark.job.description": "my own text"}
    stages.job_started({**job, "Properties": properties})
    (mine,) = stages.of_batch(str(start["runId"]), 0)
    assert mine.name == "my own text"
    stages.job_started({**job, "Properties": None})
    assert len(stages.of_batch(str(start["runId"]), 0)) == 1
