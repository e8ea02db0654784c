"""Executors that come and go."""

from __future__ import annotations

import pytest

from homeostat.spark.sense.executor_watch import ExecutorWatch, executor_news
from support.rest_server import Answers, executor, rest_answering


def test_changes_are_reported_but_not_the_first_answer() -> None:
    answers: Answers = {"allexecutors": [executor("1"), executor("2"), executor("3", alive=False)]}
    changes: list[tuple[frozenset[str], frozenset[str]]] = []
    with rest_answering(answers) as rest:
        watch = ExecutorWatch(rest, lambda: 0.0, lambda gone, new: changes.append((gone, new)), tuple)
        watch.read()
        assert watch.workers.ids == ("1", "2")
        assert changes == []
        answers["allexecutors"] = [executor("2"), executor("4")]
        watch.read()
        watch.read()
    assert changes == [(frozenset({"1"}), frozenset({"4"}))]
    assert executor_news(*changes[0]) == "executor 1 was lost, executor 4 was added"


def test_news_that_could_not_be_told_are_told_again() -> None:
    answers: Answers = {"allexecutors": [executor("1")]}
    changes: list[frozenset[str]] = []

    def tell(gone: frozenset[str], new: frozenset[str]) -> None:
        changes.append(new)
        if len(changes) == 1:
            raise ConnectionError("the driver does not answer")

    with rest_answering(answers) as rest:
        watch = ExecutorWatch(rest, lambda: 0.0, tell, tuple)
        watch.read()
        answers["allexecutors"] = [executor("1"), executor("2")]
        with pytest.raises(ConnectionError):
            watch.read()
        watch.read()
        watch.read()
    assert changes == [{"2"}, {"2"}]


def test_an_executor_that_leaves_is_gone_before_its_process_is() -> None:
    with rest_answering({"allexecutors": [executor("1"), executor("2")]}) as rest:
        watch = ExecutorWatch(rest, lambda: 0.0, lambda gone, new: None, lambda: {"2"})
        watch.read()
    assert watch.workers.ids == ("1",)


def test_an_answer_is_fresh_for_three_seconds_and_silence_is_counted_from_it() -> None:
    now_s = [100.0]
    with rest_answering({"allexecutors": [executor("1")]}) as rest:
        watch = ExecutorWatch(rest, lambda: now_s[0], lambda gone, new: None, tuple)
        now_s[0] = 110.0
        assert not watch.fresh
        assert watch.silent_s == 10.0
        watch.read()
    now_s[0] = 112.9
    assert watch.fresh
    now_s[0] = 113.0
    assert not watch.fresh
    assert watch.silent_s == 3.0
