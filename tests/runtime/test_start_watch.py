"""Queries without a first batch are told about, at growing intervals."""

from __future__ import annotations

import re
import threading

from homeostat.runtime.start_watch import FIRST_S, StartWatch

LIMIT_S = 30.0


def test_what_is_waited_for_is_said_again_at_growing_intervals_until_it_comes() -> None:
    messages: list[str] = []
    three, waiting = threading.Event(), {"words": "Getting offsets from Kafka"}

    def say(line: str) -> None:
        messages.append(line)
        if len(messages) == 3:
            waiting.clear()
            three.set()

    watch = StartWatch(lambda: dict(waiting), say, first_s=0.05)
    with watch:
        assert three.wait(LIMIT_S)
        watch._thread.join(LIMIT_S)
        assert not watch._thread.is_alive(), "it ends by itself once nothing is waited for"
    line = re.compile(r"query words has not finished a batch after \d+ s; Spark reports: Getting offsets from Kafka")
    assert len(messages) == 3
    assert all(line.fullmatch(each) for each in messages)


def test_it_speaks_within_ten_seconds() -> None:
    assert FIRST_S < 10.0


def test_it_says_nothing_once_it_is_closed_or_spark_is_gone() -> None:
    messages: list[str] = []

    def driver_that_ended() -> dict[str, str]:
        raise ConnectionError("the driver has ended")

    with StartWatch(driver_that_ended, messages.append, first_s=0.01) as watch:
        watch._thread.join(LIMIT_S)
    with StartWatch(lambda: {"words": "Initializing"}, messages.append) as watch:
        pass
    watch._thread.join(LIMIT_S)
    assert messages == []
