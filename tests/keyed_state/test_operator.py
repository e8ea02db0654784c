"""`hs.keyed` on Spark: what is refused when it is built, and the same results and state whatever the spread."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester
from pyspark.sql.types import ArrayType, DoubleType, LongType, StructField, StructType, TimestampType

import homeostat as hs
from homeostat.core.configuration import SPREAD, STATE_PARTITIONS, Knob, Value
from homeostat.core.errors import ConfigError
from homeostat.core.events import Observed
from homeostat.keyed_state.merge_check import Merging, require_mergeable
from homeostat.keyed_state.on_spark import PROVIDER
from homeostat.keyed_state.operator import PART, STATE, Operator, _adder, _instances, _Processor
from homeostat.lab.ledger import check, committed_rows, recorded_rows
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import NAME, pipeline_of, specification
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark.application import Application
from homeostat.spark.pipeline import Context, Pipeline, Spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("google.protobuf", reason="Spark's transformWithState in Python needs protobuf")

WaitUntil = Callable[[Callable[[], bool], str], None]


@pytest.fixture(scope="session")
def spark(cluster_spark: SparkSession) -> SparkSession:
    """The spread of hot keys is seen on several executors only."""
    return cluster_spark


LIMIT_S = 240.0
PROFILE = Profile(WorkloadSpec("constant", rate_per_s=150.0), keys=12, zipf=0.0, hot=((0, 0.5),))
TWO_NUMBERS = StructType([StructField("times", LongType()), StructField("total", LongType())])
MEAN = StructType([StructField("times", LongType()), StructField("mean", DoubleType())])
SPREAD_KNOB, STATE_KNOB = Knob(SPREAD, f"{NAME}/count"), Knob(STATE_PARTITIONS, NAME)


def dealt(operator: Operator, batch: list[tuple[str, int]], instances: int) -> list[Row]:
    """What comes out of the step that adds rows up, dealt to so many instances."""
    parts: list[Row] = []
    for number in range(instances):
        mine = batch[number::instances]
        columns = [pa.array([word for word, _ in mine]), pa.array([amount for _, amount in mine], pa.int64())]
        taken = pa.RecordBatch.from_arrays(columns, names=["word", "amount"])
        parts += [Row(**each) for out in _adder(operator)(iter([taken])) for each in out.to_pylist()]
    return parts


@given(
    batches=st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, 9)), min_size=1, max_size=20), min_size=1, max_size=4
    ),
    spreads=st.lists(st.integers(1, 5), min_size=4, max_size=4),
)
def test_an_operator_gives_the_same_after_every_batch_under_any_sequence_of_spreads(
    batches: list[list[tuple[str, int]]], spreads: list[int]
) -> None:
    merging = Merging(
        (0, 0),
        lambda so_far, row: (so_far[0] + 1, so_far[1] + row.amount),
        lambda one, other: (one[0] + other[0], one[1] + other[1]),
        lambda so_far: (so_far[0], so_far[1] / so_far[0]),
    )
    operator = Operator(merging, ("word",), TWO_NUMBERS, MEAN)
    plain = TwsTester(_Processor(operator, is_combined=False))
    state: dict[str, Any] = {}
    for batch, spread in zip(batches, spreads, strict=False):
        combined = TwsTester(_Processor(operator, is_combined=spread > 1))
        given_rows = dealt(operator, batch, spread) if spread > 1 else [Row(word=w, amount=a) for w, a in batch]
        for word in sorted({word for word, _ in batch}):
            if word in state:
                combined.updateValueState(STATE, word, state[word])
            (expected,) = plain.test(word, [Row(word=w, amount=a) for w, a in batch if w == word])
            (result,) = combined.test(word, [row for row in given_rows if row.word == word])
            assert result == expected
            state[word] = combined.peekValueState(STATE, word)


def test_a_moment_and_a_whole_number_come_back_from_the_state_as_add_can_use_them() -> None:
    """Spark gives back the local time of a TIMESTAMP, and nothing at all of a whole number in a DOUBLE."""
    merging = Merging(
        (datetime.fromtimestamp(0, UTC), 0),
        lambda so_far, row: (max(so_far[0], row.at), so_far[1] + row.amount),
        lambda one, other: (max(one[0], other[0]), one[1] + other[1]),
    )
    state = StructType([StructField("latest", TimestampType()), StructField("total", DoubleType())])
    tester = TwsTester(_Processor(Operator(merging, ("word",), state, state), is_combined=False))
    for second in (5, 9, 7):
        (result,) = tester.test("a", [Row(word="a", at=datetime.fromtimestamp(second, UTC), amount=2)])
    assert (result.latest, result.total) == (datetime.fromtimestamp(9, UTC), 6)
    assert tester.peekValueState(STATE, "a") == (9_000_000, 6.0)


def test_moments_in_a_list_are_those_of_rows_in_every_batch_and_under_any_spread() -> None:
    def with_moment(so_far: list[datetime], row: Any) -> list[datetime]:
        return sorted({*so_far, row.amount})

    merging = Merging(list, with_moment, lambda one, other: sorted({*one, *other}))
    state = StructType([StructField("seen", ArrayType(TimestampType()))])
    operator = Operator(merging, ("word",), state, state)
    tester = TwsTester(_Processor(operator, is_combined=True))
    moments = [datetime.fromtimestamp(second, UTC) for second in (5, 9, 7)]
    for moment in moments:
        taken = pa.RecordBatch.from_pydict({"word": ["a"], "amount": [moment]})
        (part,) = (Row(**each) for out in _adder(operator)(iter([taken])) for each in out.to_pylist())
        (result,) = tester.test("a", [part])
    assert result.seen == sorted(moments)
    assert tester.peekValueState(STATE, "a") == ([5_000_000, 7_000_000, 9_000_000],)


def test_rows_are_added_up_by_several_columns_of_any_simple_type_and_by_null() -> None:
    merging = Merging(0, lambda total, row: total + row.amount, operator.add)
    count = StructType([StructField("total", LongType())])
    moment, day = datetime.fromtimestamp(5, UTC), date(2026, 1, 1)
    keys = [(day, moment), (None, moment), (day, moment), (None, None), (None, moment)]
    taken = pa.RecordBatch.from_pydict(
        {
            "day": pa.array([day for day, _ in keys], pa.date32()),
            "at": pa.array([at for _, at in keys], pa.timestamp("us", "Asia/Tokyo")),
            "amount": [1, 2, 4, 8, 16],
        }
    )
    (out,) = _adder(Operator(merging, ("day", "at"), count, count))(iter([taken]))
    assert out.schema.types[:2] == taken.schema.types[:2]
    totals = {(row["day"], row["at"]): pickle.loads(row[PART]) for row in out.to_pylist()}
    assert totals == {(day, moment): 5, (None, moment): 18, (None, None): 8}


@pytest.mark.parametrize(
    ("finish", "result", "complaint"),
    [
        (
            lambda s: s[1] / s[0],
            MEAN,
            "result raised TypeError: expected one value for each of times, mean, not 1.0 (called",
        ),
        (
            lambda s: "ab",
            MEAN,
            "result raised TypeError: expected one value for each of times, mean, not 'ab' (called with",
        ),
        (
            lambda s: s[1] / s[0],
            StructType(MEAN.fields[:1]),
            "result raised TypeError: the column times BIGINT cannot store 1.0",
        ),
        (lambda s: s[1] / 0, MEAN, "finish raised ZeroDivisionError: division by zero (called with (1, 1))"),
    ],
)
def test_what_finish_returns_must_fit_the_result(
    finish: Callable[[Any], Any], result: StructType, complaint: str
) -> None:
    merging = Merging(
        (0, 0),
        lambda so_far, row: (so_far[0] + 1, so_far[1] + row),
        lambda one, other: (one[0] + other[0], one[1] + other[1]),
        finish,
    )
    operator = Operator(merging, ("word",), TWO_NUMBERS, result)
    with pytest.raises(ConfigError) as refused:
        require_mergeable(merging, [1], "keyed", stored_form=operator.stored_form, result_form=operator.result_form)
    assert refused.value.line.startswith(f"keyed: {complaint}")


@pytest.mark.parametrize("spread", [0, 2.5, 2.0, "8", True, None, Spread(0, "count")])
def test_a_spread_is_a_whole_number(spread: Any) -> None:
    with pytest.raises(ConfigError, match=r"keyed: spread must be a whole number of at least 1, not "):
        _instances(spread)


def rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("a", 1, [1])], "word STRING, amount BIGINT, many ARRAY<INT>")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"key": "wrod"}, "keyed: there is no column 'wrod' (choose one of word, amount, many)"),
        ({"key": "many"}, "keyed: the column 'many' cannot be a key"),
        ({"state": "this is nothing"}, "keyed: 'this is nothing' does not declare columns"),
        ({"state": "word STRING"}, "keyed: 'word' is both a key and a result"),
        ({"finish": float}, "keyed: finish is given, but result has no columns"),
        ({"result": "mean DOUBLE"}, "keyed: result is given, but finish is not"),
        ({"spread": 2.0}, "keyed: spread must be a whole number of at least 1, not 2.0"),
        ({"merge": operator.sub}, "keyed: zero is not neutral: merge(zero, "),
        (
            {"add": lambda count, row: count + 0.5},
            "keyed: state raised TypeError: the column count BIGINT cannot store 0.5",
        ),
        ({"state": "count STRING"}, "keyed: state raised TypeError: the column count STRING cannot store "),
        ({"finish": str, "result": "n BIGINT"}, "keyed: result raised TypeError: the column n BIGINT cannot store '"),
        ({"state": "n INT, total INT"}, "keyed: state raised TypeError: "),
        ({"add": lambda count, row: count + row.price}, "keyed: add raised "),
    ],
)
def test_what_cannot_work_is_refused_when_it_is_built(
    spark: SparkSession, arguments: dict[str, Any], complaint: str
) -> None:
    defaults: dict[str, Any] = {
        "key": "word",
        "zero": 0,
        "add": lambda count, row: count + row.amount,
        "merge": operator.add,
        "state": "count BIGINT",
    }
    with pytest.raises(ConfigError) as refused:
        hs.keyed(rows(spark), **(defaults | arguments))
    assert refused.value.line.startswith(complaint)


def test_another_state_store_is_refused_when_it_is_built(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    with pytest.raises(ConfigError, match="keyed: Spark requires the RocksDB state store"):
        hs.keyed(rows(session), key="word", zero=0, add=lambda n, row: n + 1, merge=operator.add, state="n BIGINT")


def test_without_a_spread_the_plan_has_no_step_more(spark: SparkSession) -> None:
    def plan(spread: int | Spread) -> str:
        stream = spark.readStream.format("rate").load().selectExpr("value % 5 AS word")
        counts = hs.keyed(
            stream, key="word", zero=0, add=lambda n, row: n + 1, merge=operator.add, state="n BIGINT", spread=spread
        )
        return str(counts._jdf.queryExecution().analyzed().toString())

    assert "Repartition" not in plan(1)
    assert "MapInArrow" not in plan(1)
    assert "Repartition 4" in plan(4)
    assert "MapInArrow" in plan(Spread(4, "count"))


def counted_words(home: Path) -> Pipeline:
    return pipeline_of(
        specification(
            PROFILE,
            home / "ledger",
            wait_ms=0.1,
            own_state=True,
            source_partitions=2,
            state_partitions=2,
            trigger_s=1.0,
        )
    )


@pytest.mark.soak
def test_results_and_state_are_the_same_whatever_the_spread_and_the_partitions(
    spark: SparkSession, tmp_path: Path, wait_until: WaitUntil
) -> None:
    pipeline = counted_words(tmp_path)
    control = tmp_path / "control.json"

    def build(values: Any) -> Any:
        return pipeline.build(Context(spark, NAME, values, tmp_path, control))

    first: dict[Knob, Value] = {SPREAD_KNOB: 1, STATE_KNOB: 2}
    query = ManagedQuery(spark, NAME, build, tmp_path / "checkpoint", first)
    query.start(Deadline.after(LIMIT_S))
    try:
        for change in ({SPREAD_KNOB: 3}, {SPREAD_KNOB: 2, STATE_KNOB: 3}, {SPREAD_KNOB: 1}):
            query.restart(change, Deadline.after(LIMIT_S))
            before = query.batches()
            wait_until(lambda before=before: query.batches() > before, "it goes on")  # type: ignore[misc]
        assert query.values == {SPREAD_KNOB: 1, STATE_KNOB: 3}
    finally:
        query.stop()
    counted = max(committed_rows(tmp_path / "checkpoint"), recorded_rows(tmp_path / "ledger", tmp_path / "checkpoint"))
    assert counted > 0
    assert check(tmp_path / "ledger", PROFILE, counted) == []


def test_the_loop_sees_the_largest_key_and_the_knob_that_spreads_it(
    spark: SparkSession, tmp_path: Path, wait_until: WaitUntil
) -> None:
    application = Application([counted_words(tmp_path)], tmp_path / "kept")
    application.open(spark)
    try:
        application.start()
        engine = application.engine(NAME)
        events: list[Observed] = []

        def with_keys() -> list[Observed]:
            events.extend(event for event in engine.wait(engine.now_s) if isinstance(event, Observed))
            return [event for event in events if event.observation.keys]

        wait_until(lambda: len(with_keys()) > 1, "batches are observed")
        description = engine.describe()
        (load,) = with_keys()[-1].observation.keys.values()
        assert load.key == "hot"
        assert 0.3 < load.share < 0.7
        assert len(load.next_rows) == 7
        assert load.largest_rows > max(load.next_rows) > 0
        state = next(component for component in description.topology if component.spread is not None)
        assert (state.spread, state.keyed) == (SPREAD_KNOB, True)
        assert description.configuration[SPREAD_KNOB] == 1
        assert not description.capabilities.knobs[SPREAD_KNOB].live
        application.queries[NAME].restart({SPREAD_KNOB: 2}, Deadline.after(LIMIT_S))
        assert engine.describe().configuration[SPREAD_KNOB] == 2
        wait_until(lambda: "count-combine" in engine.describe().topology, "the step that adds rows up is seen")
        shape = engine.describe().topology
        assert shape["count-combine"].partitions == SPREAD_KNOB
        assert shape["state"].inputs == ("count-combine",)
    finally:
        application.stop(session=False)
