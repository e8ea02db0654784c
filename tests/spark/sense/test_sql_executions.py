"""Files that a batch read and wrote, from answers of Spark's REST API."""

from __future__ import annotations

import math
from typing import Any

from homeostat.core.observation import FileSample
from homeostat.spark.sense.plan_graph import from_scopes
from homeostat.spark.sense.sql_executions import SqlBook, amount, describes, handles_files
from support.rest_server import Answers, rest_answering

READING = {"name": "number of files read", "value": "1,003"}, {"name": "size of files read", "value": "10.5 KiB"}
WRITING = {"name": "number of written files", "value": "3"}, {"name": "written output", "value": "1370.0 B"}
ROWS = {"name": "number of output rows", "value": "5"}


def execution(number: int, batch: int, *metrics: dict[str, str]) -> dict[str, Any]:
    description = f"words\nid = q\nrunId = run-1\nbatch = {batch}"
    return {"id": number, "description": description, "nodes": [{"metrics": [*metrics, ROWS]}]}


def test_metrics_are_read_as_spark_writes_them() -> None:
    assert (amount("1,003"), amount("10.5 KiB"), amount("2.0 GiB")) == (1003.0, 10752.0, 2.0**31)
    assert amount("total (min, med, max (stageId: taskId))\n1.0 KiB (2.6 KiB, 3.6 KiB)") == 1024.0
    assert math.isnan(amount("?"))


def test_the_executions_of_a_batch_are_added_up() -> None:
    answers: Answers = {"sql": [execution(6, 3)]}
    with rest_answering(answers) as rest:
        book = SqlBook(rest)
        assert math.isnan(book.files("run-1", 3, ()).read), "it begins with the batch after the first"
        answers |= {f"sql/{number}": execution(number, 4, *metrics) for number, metrics in ((7, READING), (8, WRITING))}
        answers["sql/9"] = execution(9, 5, *WRITING, *WRITING)
        assert book.files("run-1", 4, ()) == FileSample(1003.0, 10752.0, 3.0, 1370.0)
        assert book.files("run-1", 5, ()).written == 6.0


def test_what_the_user_described_is_found_by_its_jobs() -> None:
    answers: Answers = {"sql": [execution(6, 3)]}
    with rest_answering(answers) as rest:
        book = SqlBook(rest)
        book.files("run-1", 3, ())
        answers["sql/7"] = {**execution(7, 4, *WRITING), "description": "my own text", "successJobIds": [12, 13]}
        answers["sql/8"] = execution(8, 4, *READING)
        assert book.files("run-1", 4, {13}) == FileSample(1003.0, 10752.0, 3.0, 1370.0)


def test_after_numbers_that_spark_has_forgotten_it_begins_anew() -> None:
    answers: Answers = {"sql": [execution(6, 3)]}
    with rest_answering(answers) as rest:
        book = SqlBook(rest)
        book.files("run-1", 3, ())
        answers["sql"] = [execution(500, 90)]
        assert math.isnan(book.files("run-1", 91, ()).written)
        assert math.isnan(book.files("run-1", 92, ()).written)
        answers["sql/501"] = execution(501, 93, *WRITING)
        assert book.files("run-1", 93, ()).written == 3.0


def test_an_application_without_sql_pages_has_unknown_files() -> None:
    with rest_answering({}) as rest:
        book = SqlBook(rest)
        assert all(math.isnan(book.files("run-1", batch, ()).read) for batch in range(3))


def test_a_description_names_run_and_batch() -> None:
    text = "words\nid = q\nrunId = run-1\nbatch = 12"
    assert describes(text, "run-1", 12)
    assert not describes(text, "run-1", 2)
    assert not describes(text, "run-2", 12)


def test_only_operators_on_files_are_asked_about() -> None:
    assert handles_files([None, from_scopes([(1, "a", "Scan json ")])])
    assert handles_files([from_scopes([(1, "a", "MicroBatchScan"), (2, "b", "WriteFiles")])])
    assert not handles_files([None, from_scopes([(1, "a", "MicroBatchScan"), (2, "b", "Scan ExistingRDD")])])
