"""Why an attempt failed, in one line."""

from __future__ import annotations

from homeostat.spark.sense.failure_reasons import UNKNOWN_REASON, executor_lost, short_reason


def test_an_exception_is_named_with_the_first_line_of_its_message() -> None:
    text = "java.io.IOException: No space left on device\n\tat java.base/java.io.FileOutputStream.writeBytes"
    assert short_reason(text) == "java.io.IOException: No space left on device"
    assert len(short_reason("x" * 1000)) == 200
    assert short_reason("") == UNKNOWN_REASON


def test_an_error_in_python_code_is_named_as_python_does() -> None:
    text = (
        "org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the Python "
        'worker: Traceback (most recent call last):\n  File "/home/user/job.py", line 20, in boom\n    raise x\n'
        "KeyError: 'amount'\n SQLSTATE: 38000\n\tat org.apache.spark.api.python"
    )
    assert short_reason(text) == "KeyError: 'amount'"


def test_blocks_that_could_not_be_read_name_the_executor_that_had_them() -> None:
    text = "FetchFailed(BlockManagerId(2, 127.0.0.3, 35281, None), shuffleId=0, mapIndex=1, mapId=1, message="
    assert short_reason(text) == "FetchFailed: no shuffle blocks from executor 2 on 127.0.0.3"


def test_a_lost_executor_reads_as_over_rest() -> None:
    over_rest = "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: exit code 137\nmore"
    assert executor_lost("1", "exit code 137\nmore", caused_by_task=True) == short_reason(over_rest)
