"""What cannot run is refused in one line, as early as it can be known."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

import homeostat as hs
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.testing import Rehearsal


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"n": hs.Count(ttl="1 h"), "time": "event"}, "Broken.n: a time to live follows the clock"),
        ({"time": "lunch"}, "Broken.time: time cannot be 'lunch'"),
        ({"wake": hs.Count()}, "Broken.wake: this name is reserved"),
        ({"on_rows": lambda self, key, rows: None}, "Broken: emits declares no output columns"),
        (
            {"emits": "user, n BIGINT"},
            "emits: 'user' is not a column (write a name and a type, such as \"user STRING\")",
        ),
        ({"emits": "STRUCT<user: STRING>"}, "emits: 'STRUCT<user: STRING>' is not a column"),
        ({"emits": "user STRING,"}, "emits: '' is not a column"),
    ],
)
def test_a_class_that_cannot_run_is_refused_when_it_is_defined(body: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        type("Broken", (hs.State,), body)
    assert complaint in refused.value.line


@pytest.mark.parametrize(
    ("ttl", "complaint"),
    [("soon", "ttl: must be a duration"), ("3", "ttl: needs a unit"), ("0 s", "ttl: must be at least 1 ms, not '0 s'")],
)
def test_a_time_to_live_is_a_duration(ttl: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        hs.Count(ttl=ttl)
    assert complaint in refused.value.line


class Careless(hs.State):
    """Does what its only row says."""

    emits = "n BIGINT"
    n = hs.Count()
    at = hs.Value(datetime)
    hashes = hs.Counts(int)

    def on_rows(self, key: str, rows: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            yield from row.does(self)


class Timed(hs.State):
    emits = "n BIGINT"
    time = "event"


def wrongly(does: Any) -> None:
    Rehearsal(Careless(), key="key").feed({"key": "a", "does": does})


def test_the_largest_and_the_smallest_number_of_64_bits_are_kept() -> None:
    rehearsal = Rehearsal(Careless(), key="key")
    for number in (2**63 - 1, -(2**63)):
        rehearsal.feed({"key": "a", "does": lambda state, n=number: state.hashes.update({n: n}) or ()})
    assert dict(rehearsal["a"].hashes) == {2**63 - 1: 2**63 - 1, -(2**63): -(2**63)}


def test_mistakes_are_reported_as_they_are_made() -> None:
    with pytest.raises(TypeError, match="a state variable of type int cannot store 'many'"):
        wrongly(lambda state: setattr(state, "n", "many"))
    with pytest.raises(TypeError, match="a state variable of type int cannot store 9223372036854775808"):
        wrongly(lambda state: setattr(state, "n", 2**63))
    with pytest.raises(TypeError, match="a state variable of type int cannot store -9223372036854775809"):
        wrongly(lambda state: state.hashes.update({-(2**63) - 1: 1}))
    with pytest.raises(HomeostatError, match="Careless sets a timer, but has no on_timer"):
        wrongly(lambda state: state.wake("1 s"))
    with pytest.raises(HomeostatError, match="Careless uses the time, but does not declare `time`"):
        wrongly(lambda state: [state.now_ms])
    with pytest.raises(
        HomeostatError, match=r"Careless yields \(1, 2\), which does not match `emits` \(yield a tuple of n\)"
    ):
        wrongly(lambda state: [(1, 2)])
    with pytest.raises(HomeostatError, match=r"Careless.m is not declared \(add `m = hs.Value"):
        wrongly(lambda state: setattr(state, "m", 1))
    with pytest.raises(HomeostatError, match="the state of Careless is available only in its handlers"):
        Careless().n += 1
    with pytest.raises(ConfigError, match="name the column of the event time"):
        Rehearsal(Timed(), key="user")
