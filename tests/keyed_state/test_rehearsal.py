"""States in memory and on Spark: each does what its writer expects, and both do the same, batch by batch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import homeostat as hs
from homeostat.core.errors import ConfigError
from homeostat.testing import Rehearsal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Yields = Iterator[tuple[Any, ...]]
Batch = Sequence[Mapping[str, Any]]
Emitted = list[tuple[Any, ...]]
Play = Callable[..., list[Emitted]]
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class Purchase(NamedTuple):
    item: str
    price: float
    at: datetime | None


class Basket(hs.State):
    """Every kind of variable; emits all it knows, as JSON."""

    emits = "shop STRING, user STRING, known STRING"

    rows = hs.Count()
    last = hs.Value(Purchase)
    greeting = hs.Value(str, "hello")
    prices = hs.List(float)
    cheapest = hs.Map(str, float)
    items = hs.Counts(str)

    def on_rows(self, key: tuple[str, str], rows: Iterator[Any]) -> Yields:
        for row in rows:
            self.rows += 1
            if row.item == "forget":
                self._forget()
                continue
            self.last = Purchase(row.item, row.price, row.at)
            self.prices.append(row.price)
            self.cheapest[row.item] = min(row.price, self.cheapest.get(row.item, row.price))
            self.items[row.item] += 1
        self.greeting = f"{self.greeting}!"
        yield (*key, json.dumps(self.known(), sort_keys=True))

    def _forget(self) -> None:
        del self.last
        self.prices = [price for price in self.prices if price < 2]
        if "tea" in self.cheapest:
            del self.cheapest["tea"]
        self.items.clear()

    def known(self) -> dict[str, Any]:
        last = self.last
        return {
            "rows": self.rows,
            "last": None if last is None else [last.item, last.price, last.at.isoformat() if last.at else None],
            "greeting": self.greeting,
            "prices": sorted(self.prices),
            "some prices": bool(self.prices),
            "cheapest": dict(self.cheapest),
            "items": dict(self.items),
            "milk": self.items["milk"],
        }


class Sessions(hs.State):
    """Clicks until ten seconds pass without one, by the time of the clicks."""

    emits = "user STRING, clicks BIGINT, what STRING"
    time = "event"

    clicks = hs.Count()

    def on_rows(self, key: str, rows: Iterator[Any]) -> Yields:
        latest = max(row.at for row in rows if self._counted())
        self.sleep()
        self.wake("10 s", since=latest)
        self.wake("12 s", since=latest)
        yield key, self.clicks, f"{len(self.timers)} timers"

    def _counted(self) -> bool:
        self.clicks += 1
        return True

    def on_timer(self, key: str, at_ms: int) -> Yields:
        yield key, self.clicks, f"{at_ms} by {self.now_ms}"
        del self.clicks


class Fading(hs.State):
    """One of each kind that is gone at once, and one that stays; and a timer that sets another for the past."""

    emits = "key STRING, known STRING"

    short = hs.Count(ttl="1 ms")
    long = hs.Count(ttl="1 h")
    short_list = hs.List(int, ttl="1 ms")
    long_list = hs.List(int, ttl="1 h")
    short_map = hs.Map(int, int, ttl="1 ms")
    long_map = hs.Map(int, int, ttl="1 h")
    rings = hs.Count()

    def on_rows(self, key: str, rows: Iterator[Any]) -> Yields:
        for row in rows:
            self.short += 1
            self.long += 1
            self.short_list.append(row.n)
            self.long_list.append(row.n)
            self.short_map[row.n] = row.n
            self.long_map[row.n] = row.n
        if not self.timers and not self.rings:
            self.wake("1 ms")
        yield key, self._known()

    def on_timer(self, key: str, at_ms: int) -> Yields:
        self.rings += 1
        if self.rings < 3:
            self.wake("1 ms", since=at_ms)
        yield key, f"ring {self.rings}"

    def _known(self) -> str:
        lists = (sorted(self.short_list), sorted(self.long_list), sorted(self.short_map), sorted(self.long_map))
        return json.dumps((self.short, self.long, *lists))


class Visits(hs.State):
    """A synopsis of each kind."""

    emits = "page STRING, visitors DOUBLE, median DOUBLE, top STRING"

    visitors = hs.Distinct(error=0.05)
    seconds = hs.Quantiles(error=0.05)
    terms = hs.HeavyHitters(str, error=0.05)

    def on_rows(self, key: str, rows: Iterator[Any]) -> Yields:
        for row in rows:
            self.visitors.add(row.user)
            self.seconds.add(row.seconds)
            self.terms.add(row.term)
        yield key, self.visitors.estimate, self.seconds.at(0.5), self.terms.top(1)[0].item


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def bought(item: str, price: float = 1.0, user: str = "ann") -> dict[str, Any]:
    return {"shop": "east", "user": user, "item": item, "price": price, "at": EPOCH}


def clicked(user: str, second: int) -> dict[str, Any]:
    return {"user": user, "at": datetime.fromtimestamp(second, UTC)}


def test_each_key_has_variables_of_its_own_and_keeps_them_from_batch_to_batch() -> None:
    baskets = Rehearsal(Basket(), key=("shop", "user"))
    baskets.feed(bought("tea", 2.5), bought("tea", 1.5), bought("milk", user="bob"))
    ((_, user, known),) = baskets.feed(bought("jam", 3.0))
    assert user == "ann"
    assert json.loads(known) == {
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
    known, *rings = fading.feed({"key": "a", "n": 2}, after="1 ms")
    assert known == ("a", "[1, 2, [2], [1, 2], [2], [1, 2]]")
    assert rings == [("a", "ring 1")]
    assert fading.advance("1 h") == [("a", "ring 2")]
    assert (fading["a"].long, list(fading["a"].long_list)) == (0, [])


def test_time_to_live_of_a_value_counts_from_its_last_write() -> None:
    class Kept(hs.State):
        emits = "n BIGINT"
        seen = hs.Count(ttl="10 s")

        def on_rows(self, key: str, rows: Iterator[Any]) -> None:
            self.seen += 1

    kept = Rehearsal(Kept(), key="key")
    for _ in range(5):
        kept.feed({"key": "a"}, after="9 s")
    assert kept["a"].seen == 5
    kept.advance("10 s")
    assert kept["a"].seen == 0


@pytest.fixture
def play(on_spark: Play) -> Play:
    """Python on the executors does not find this file."""
    from pyspark import cloudpickle

    by_value: Any = cloudpickle.register_pickle_by_value
    by_value(sys.modules[__name__])
    return on_spark


def moment(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def in_order(batches: list[Emitted]) -> list[Emitted]:
    """Spark's partitions come in any order, and keys within them."""
    return [sorted(batch, key=repr) for batch in batches]


def rehearsed(rehearsal: Rehearsal[Any], batches: Sequence[Batch], after: str | None = None) -> list[Emitted]:
    return [rehearsal.feed(*batch, after=after) for batch in batches]


def test_every_kind_of_variable(play: Play) -> None:
    def bought(user: str, item: str, price: float, second: int) -> dict[str, Any]:
        return {"shop": "east", "user": user, "item": item, "price": price, "at": moment(second)}

    batches = [
        [bought("ann", "tea", 2.5, 1), bought("bob", "milk", 1.0, 2), bought("cy", "jam", 1.5, 3)],
        [bought("ann", "milk", 1.25, 4), bought("bob", "milk", 0.5, 5), bought("bob", "milk", 0.75, 5)],
        [bought("ann", "forget", 0.0, 6), bought("bob", "tea", 3.0, 7), bought("cy", "forget", 0.0, 8)],
        [bought("ann", "tea", 9.0, 9), bought("cy", "tea", 1.0, 9)],
    ]
    schema = "shop STRING, user STRING, item STRING, price DOUBLE, at TIMESTAMP"
    on_spark = play(lambda rows: Basket().over(rows.groupBy("shop", "user")), schema, batches)
    assert in_order(on_spark) == in_order(rehearsed(Rehearsal(Basket(), key=("shop", "user")), batches))
    assert [len(batch) for batch in on_spark] == [3, 2, 3, 2]


def test_event_time_timers_and_late_rows(play: Play) -> None:
    def clicked(user: str, second: int) -> dict[str, Any]:
        return {"user": user, "at": moment(second)}

    batches = [
        [clicked("ann", 100), clicked("ann", 101), clicked("bob", 90)],
        [clicked("bob", 116)],
        [clicked("ann", 111), clicked("cy", 112)],
        [clicked("bob", 400), clicked("ann", 401)],
    ]
    on_spark = play(
        lambda rows: Sessions().over(rows.withWatermark("at", "5 seconds").groupBy("user")),
        "user STRING, at TIMESTAMP",
        batches,
    )
    in_memory = rehearsed(Rehearsal(Sessions(), key="user", event_time="at", delay="5 s"), batches)
    assert in_order(on_spark) == in_order(in_memory)
    assert sum(" by " in what for batch in on_spark for _, _, what in batch) == 3


def test_times_to_live_and_timers_by_the_clock(play: Play) -> None:
    batches = [[{"key": "a", "n": 1}], [{"key": "a", "n": 2}, {"key": "b", "n": 3}], [{"key": "a", "n": 4}]]
    on_spark = play(lambda rows: Fading().over(rows.groupBy("key")), "key STRING, n BIGINT", batches, clock=True)
    assert in_order(on_spark) == in_order(rehearsed(Rehearsal(Fading(), key="key"), batches, after="1 min"))


def test_synopses_and_what_spark_reads_of_them(play: Play, spark: SparkSession, tmp_path: Path) -> None:
    def visited(page: str, number: int) -> dict[str, Any]:
        return {"page": page, "user": f"u{number % 50}", "seconds": float(number), "term": f"t{number % 3 % 2}"}

    batches = [[visited(page, number) for page in "ab" for number in range(100)] for _ in range(2)]
    schema = "page STRING, user STRING, seconds DOUBLE, term STRING"
    on_spark = play(lambda rows: Visits().over(rows.groupBy("page")), schema, batches)
    assert in_order(on_spark) == in_order(rehearsed(Rehearsal(Visits(), key="page"), batches))
    reader = spark.read.format("statestore").option("path", str(tmp_path / "checkpoint"))
    kept = reader.option("stateVarName", "visitors").load()
    counted = kept.selectExpr("key.page", "hll_sketch_estimate(value.summary)").collect()
    assert sorted(map(tuple, counted)) == [("a", 50), ("b", 50)]


def test_another_state_store_is_refused_before_the_query_starts(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.unset(PROVIDER)
    session.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    rows = session.readStream.format("rate").load()
    with pytest.raises(ConfigError, match="Fading: Spark requires the RocksDB state store"):
        Fading().over(rows.groupBy("value"))
