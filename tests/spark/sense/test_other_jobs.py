"""Jobs that run no stage of the query, told from those that do."""

from __future__ import annotations

from homeostat.core.observation import JobSpan
from homeostat.spark.sense.other_jobs import MOST_JOBS, job_spans, split_jobs
from homeostat.spark.sense.plan_graph import StageGraph, from_scopes
from homeostat.spark.sense.rest_answers import Job

SCAN = from_scopes([(1, "a", "MicroBatchScan"), (2, "b", "Exchange")])
STATE = from_scopes([(3, "b", "Exchange"), (4, "c", "StateStoreSave")], reads=[2])
AGAIN = from_scopes([(5, "d", "WriteFiles")], reads=[2])
TABLE = from_scopes([(6, "e", "Scan parquet "), (7, "f", "Exchange")])
TABLE_SUM = from_scopes([(8, "f", "AQEShuffleRead")], reads=[7])


def job(number: int, *stages: int, broadcasts: bool = False, seconds: float = 0.5) -> Job:
    began_s = 100.0 + number
    return Job(number, "run", 1, "q", stages, False, began_s, began_s + seconds, 1, f"job {number}", broadcasts)


def split(*jobs: Job, **graphs: StageGraph) -> tuple[list[int], list[int]]:
    parts = split_jobs(jobs, lambda stage: graphs.get(f"s{stage}"))
    return [each.id for each in parts.of_query], [each.id for each in parts.others]


def test_jobs_that_do_not_read_the_stream_are_others() -> None:
    jobs = (job(1, 10), job(2, 11), job(3, 12, 13), job(4, 14))
    graphs = {"s10": TABLE, "s11": TABLE_SUM, "s12": SCAN, "s13": STATE, "s14": AGAIN}
    assert split(*jobs, **graphs) == ([3, 4], [1, 2])


def test_the_small_side_of_a_join_belongs_to_the_query() -> None:
    assert split(job(1, 10, broadcasts=True), job(2, 12), s10=TABLE, s12=SCAN) == ([1, 2], [])


def test_all_jobs_belong_to_the_query_if_it_is_unknown_which_scan_a_stream() -> None:
    assert split(job(1, 10), job(2, 11)) == ([1, 2], [])
    assert split(job(1, 10), job(2, 11), s10=TABLE, s11=TABLE_SUM) == ([1, 2], [])


def test_spans_are_seconds_after_the_batch_began_and_of_too_many_the_longest() -> None:
    (span,) = job_spans([job(1)], 100.5)
    assert span == JobSpan(0.5, 1.0, "job 1")
    spans = job_spans([job(number, seconds=float(number)) for number in range(MOST_JOBS + 3)], 100.0)
    assert [spans[0].name, spans[-1].name] == ["job 3", f"job {MOST_JOBS + 2}"]
