"""A rehearsal runs a state in memory: variables, timers, times to live and late rows behave as they do on Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import homeostat as hs
from homeostat.testing import Rehearsal
from support.keyed_states import Basket, Fading, Sessions

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def bought(item: str, price: float = 1.0, user: str = "ann") -> dict[str, Any]:
    return {"shop": "east", "user": user, "item": item, "price": price, "at": EPOCH}


def clicked(user: str, second: int) -> dict[str, Any]:
    return {"user": user, "at": datetime.fromtimestamp(second, UTC)}


def test_each_key_has_variables_of_its_own_and_keeps_them_from_batch_to_batch() -> None:
    baskets = Rehearsal(Basket(), key=("shop", "user"))
    baskets.feed(bought("tea", 2.5), bought("tea", 1.5), bought("milk", user="bob"))
    ((_, user, summary),) = baskets.feed(bought("jam", 3.0))
    assert user == "ann"
    assert json.loads(summary) == {
        "rows": 3,
        "last": ["jam", 3.0, EPOCH.isoformat()],
        "greeting": "hello!!",
        "prices": [1.5, 2.5, 3.0],
        "some prices": True,
        "cheapest": {"tea": 1.5, "jam": 3.0},
        "items": {"tea": 2, "jam": 1},
        "milk": 0,
    }
    assert baskets["east", "bob"].items.most_common(1) == [("milk", 1)]
    assert baskets["east", "nobody"].greeting == "hello"


def test_what_is_deleted_is_gone() -> None:
    baskets = Rehearsal(Basket(), key=("shop", "user"))
    baskets.feed(bought("tea", 2.5), bought("jam", 1.5))
    baskets.feed(bought("forget"))
    ann = baskets["east", "ann"]
    assert (ann.last, list(ann.prices), dict(ann.cheapest), dict(ann.items)) == (None, [1.5], {"jam": 1.5}, {})
    with pytest.raises(KeyError):
        ann.cheapest["tea"]


def test_looking_at_a_key_changes_nothing() -> None:
    baskets = Rehearsal(Basket(), key=("shop", "user"))
    baskets.feed(bought("tea"))
    looked = baskets["east", "ann"]
    looked.rows = 99
    assert baskets["east", "ann"].rows == 1


def test_timers_come_when_time_has_passed_and_only_once() -> None:
    class Alarm(hs.State):
        emits = "key STRING, at_ms BIGINT, now_ms BIGINT"

        def on_rows(self, key: str, rows: Iterator[Any]) -> None:
            self.wake("10 s")

        def on_timer(self, key: str, at_ms: int) -> Iterator[tuple[Any, ...]]:
            yield key, at_ms, self.now_ms

    alarm = Rehearsal(Alarm(), key="key")
    assert alarm.feed({"key": "a"}) == []
    assert alarm.feed({"key": "b"}, after="9 s") == []
    assert alarm["a"].timers == [10_000]
    assert alarm.advance("2 s") == [("a", 10_000, 11_000)]
    assert alarm.advance("1 h") == [("b", 19_000, 3_611_000)]
    assert alarm.advance("1 h") == []


def test_in_event_time_timers_follow_the_watermark_and_late_rows_are_dropped() -> None:
    sessions = Rehearsal(Sessions(), key="user", event_time="at", delay="5 s")
    assert sessions.feed(clicked("ann", 100), clicked("ann", 101)) == [("ann", 2, "2 timers")]
    assert sessions.feed(clicked("bob", 116)) == [("bob", 1, "2 timers"), ("ann", 2, "111000 by 111000")]
    assert sessions.feed(clicked("ann", 111)) == []
    assert sessions["ann"].clicks == 0
    assert sessions.advance("1 min") == [
        ("ann", 0, "113000 by 171000"),
        ("bob", 1, "126000 by 171000"),
        ("bob", 0, "128000 by 171000"),
    ]


def test_what_has_a_time_to_live_is_gone_after_it() -> None:
    fading = Rehearsal(Fading(), key="key")
    assert fading.feed({"key": "a", "n": 1}) == [("a", "[1, 1, [1], [1], [1], [1]]")]
    row, *rings = fading.feed({"key": "a", "n": 2}, after="1 ms")
    assert row == ("a", "[1, 2, [2], [1, 2], [2], [1, 2]]")
    assert rings == [("a", "ring 1")]
    assert fading.advance("1 h") == [("a", "ring 2")]
    assert (fading["a"].long, list(fading["a"].long_list)) == (0, [])


def test_time_to_live_of_a_value_counts_from_its_last_write() -> None:
    class Kept(hs.State):
        emits = "n BIGINT"
        visits = hs.Count(ttl="10 s")

        def on_rows(self, key: str, rows: Iterator[Any]) -> None:
            self.visits += 1

    kept = Rehearsal(Kept(), key="key")
    for _ in range(5):
        kept.feed({"key": "a"}, after="9 s")
    assert kept["a"].visits == 5
    kept.advance("10 s")
    assert kept["a"].visits == 0
