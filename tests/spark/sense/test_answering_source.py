"""Which of several ways to Spark's status is asked."""

from __future__ import annotations

from contextlib import closing

import pytest

from homeostat.spark.sense.answering_source import AnsweringSource
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.sensor_error import SensorError
from support.rest_server import executor, rest_answering

NOBODY = "http://127.0.0.1:1"


def test_the_first_way_that_answers_is_kept() -> None:
    with rest_answering({"allexecutors": [executor("1")]}) as rest, closing(RestClient(NOBODY)) as closed:
        closed.way = "a closed page"
        source = AnsweringSource(closed, rest)
        assert [each.id for each in source.executors()] == ["1"]
        assert source.way == rest.way
        assert list(source.errors) == ["a closed page"]
        assert source.job(7) is None


def test_if_no_way_answers_each_is_named() -> None:
    source = AnsweringSource(RestClient(NOBODY), RestClient(f"{NOBODY}/other"))
    with closing(source), pytest.raises(SensorError) as raised:
        source.executors()
    assert raised.value.kind == "ConnectError"
    assert str(raised.value).count("127.0.0.1:1") >= 2
