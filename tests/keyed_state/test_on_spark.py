"""A state on Spark emits, batch by batch, what its rehearsal in memory emits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.errors import ConfigError
from homeostat.testing import Rehearsal
from support import keyed_states
from support.keyed_states import Basket, Fading, Sessions, Visits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Batch = Sequence[Mapping[str, Any]]
Emitted = list[tuple[Any, ...]]
Play = Callable[..., list[Emitted]]
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


@pytest.fixture
def play(on_spark: Play) -> Play:
    """Python on the executors cannot import the tests' modules, so their classes are sent by value."""
    from pyspark import cloudpickle

    by_value: Any = cloudpickle.register_pickle_by_value
    for module in (sys.modules[__name__], keyed_states):
        by_value(module)
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
