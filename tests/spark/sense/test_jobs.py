"""Jobs of batches, found by their numbers."""

from __future__ import annotations

from homeostat.spark.sense.jobs import JobBook, read_stages
from homeostat.spark.sense.rest_answers import moment_s
from support.rest_server import Answers, job, rest_answering, stage


def numbered(*jobs: dict[str, object]) -> Answers:
    return {"jobs": list(jobs), **{f"jobs/{each['jobId']}": each for each in jobs}}


def test_jobs_are_followed_by_number_and_forgotten_with_their_batch() -> None:
    answers = numbered(job(0, 4), job(1, 5))
    with rest_answering(answers) as rest:
        book = JobBook(rest)
        book.follow()
        assert [each.id for each in book.of_batch("run-1", 5)] == [1]
        answers["jobs/2"] = job(2, 5)
        book.follow()
        assert [each.id for each in book.of_batch("run-1", 5)] == [1, 2]
        assert book.newest_batch("run-1") == 5
        book.forget("run-1", 5)
    assert book.newest_batch("run-1") is None


def test_a_number_that_was_skipped_is_found_in_the_whole_list() -> None:
    answers = numbered(job(0, 4))
    with rest_answering(answers) as rest:
        book = JobBook(rest)
        book.follow()
        answers["jobs"].append(job(7, 5))
        book.follow()
        assert book.newest_batch("run-1") == 4
        book.list_anew()
    assert book.newest_batch("run-1") == 5


def test_stages_that_ran_are_read_with_their_tasks() -> None:
    answers = {**numbered(job(0, 4, stages=(1, 2))), "stages/1": [stage(1)], "stages/2": [stage(2, status="SKIPPED")]}
    with rest_answering(answers) as rest:
        book = JobBook(rest)
        book.follow()
        (run,) = read_stages(rest, book.of_batch("run-1", 4), lambda number: None)
    assert (run.stage.id, run.stage.job, run.partitions) == (1, 0, 1)
    assert [(task.rows_read, task.run_s) for task in run.tasks] == [(10.0, 1.0)]


def test_a_job_that_the_user_described_belongs_to_the_batch_during_which_it_began() -> None:
    """Job 7 began at second 7 of the minute."""
    described = {**job(7, 4), "description": "my own text"}
    with rest_answering(numbered(job(6, 4), described)) as rest:
        book = JobBook(rest)
        book.follow()
        began_s = moment_s("2026-11-15T05:01:05Z")
        assert [each.id for each in book.of_batch("run-1", 4)] == [6]
        assert [each.id for each in book.of_batch("run-1", 4, (began_s, began_s + 3.0))] == [6, 7]
        assert [each.id for each in book.of_batch("run-1", 4, (began_s, began_s + 1.0))] == [6]
        assert book.ended(book.of_batch("run-1", 4)[0]).id == 6
        book.forget("run-1", 3, began_s + 3.0)
        assert [each.id for each in book.of_batch("run-1", 4, (began_s, began_s + 3.0))] == [6]
