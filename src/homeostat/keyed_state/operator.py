"""State per key from three functions, with an optional combine step that spreads the work of hot keys."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql import functions as f
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from homeostat.core.errors import ConfigError
from homeostat.keyed_state import state_columns
from homeostat.keyed_state.merge_check import Merging, examples, require_mergeable
from homeostat.keyed_state.on_spark import require_rocksdb
from homeostat.spark.pipeline import Spread
from homeostat.spark.python_workers import spare_the_collector
from homeostat.spark.sense.key_sketch import MOST_KEYS, key_text
from homeostat.spark.sense.progress import KEYS_METRIC
from homeostat.spark_release import release

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

STATE = "accumulator"
PART, ROWS = "homeostat_part", "homeostat_rows"
# The number of made-up rows with which the functions are tested. A choice.
_SAMPLES = 40
# The number of keys that an instance combines in memory before it sends them on: more combine better and take more
# memory. A choice.
_MOST_PARTS = 100_000
# The share of columns that have a value in made-up rows with gaps. A choice.
_FILLED = 0.5
_SIMPLE = "array, map, struct and variant columns cannot be keys: choose one of their fields"
_WHERE = "keyed"


@dataclass(frozen=True)
class Operator:
    """Everything that an executor needs. If `state` has one column, a part is its value, else a tuple."""

    merging: Merging
    keys: tuple[str, ...]
    state: StructType
    result: StructType

    def pack(self, part: Any) -> tuple[Any, ...]:
        return state_columns.pack(self.state, (part,) if len(self.state) == 1 else part)

    def unpack(self, columns: Sequence[Any]) -> Any:
        values = state_columns.unpack(self.state, columns)
        return values[0] if len(self.state) == 1 else values

    def stored_form(self, part: Any) -> Any:
        """Return a part as it is read back from the state."""
        return self.unpack(self.pack(part))

    def result_form(self, result: Any) -> Any:
        """Return a result as its columns store it: a value if there is one column, else a tuple."""
        values = state_columns.round_trip(self.result, (result,) if len(self.result) == 1 else result)
        return values[0] if len(self.result) == 1 else values

    def result_row(self, key: Sequence[Any], part: Any, rows: int) -> Row:
        result = self.result_form(self.merging.result(part))
        values = (result,) if len(self.result) == 1 else result
        return Row(**dict(zip((*self.keys, *self.result.names, ROWS), (*key, *values, rows), strict=True)))


def keyed(
    rows: DataFrame,
    *,
    key: str | Sequence[str],
    zero: Any,
    add: Callable[[Any, Row], Any],
    merge: Callable[[Any, Any], Any],
    state: str,
    finish: Callable[[Any], Any] | None = None,
    result: str = "",
    spread: int | Spread = 1,
    samples: Sequence[Mapping[str, Any]] = (),
    compare: Callable[[Any], Any] = lambda result: result,
    output_mode: str = "update",
) -> DataFrame:
    """Return the result of all rows of each key so far: the columns of the key and those of `result`.

    `zero` (a value, or a function that returns one) is the state of a key before its first row, `add` adds a row to a
    state and `merge` combines two states. `state` declares the stored columns, such as "count BIGINT, total DOUBLE":
    one column is the value itself, several are a tuple. `finish` turns the state into the columns of `result`; without
    `finish`, the columns are those of `state`.

    With a `spread` above 1 the rows of a batch are first combined on that many instances, whatever their keys, and only
    the combined parts are merged into the state of each key. So the result must not depend on how rows are cut into
    parts. This is tested on `samples` (or on made-up rows) when the query is built, and an error shows an example. Pass
    `compare` if two results may be right without being equal: it returns the part that must be equal. The bytes of a
    synopsis, for example, depend on the order of its items.
    """
    require_rocksdb(rows.sparkSession, _WHERE)
    keys = (key,) if isinstance(key, str) else tuple(key)
    operator = _operator(rows, keys, Merging(zero, add, merge, finish), state, result)
    made_up = [] if samples else _made_up(rows.schema)
    require_mergeable(
        operator.merging,
        [Row(**each) for each in samples] or made_up,
        _WHERE,
        perhaps=_sparse(made_up, operator.keys),
        stored_form=operator.stored_form,
        result_form=operator.result_form,
        compare=compare,
    )
    instances, name = _instances(spread), spread.name if isinstance(spread, Spread) else ""
    is_combined = instances > 1
    parts = _combine(rows, operator, instances) if is_combined else rows
    schema = _output(rows, operator)
    results = parts.groupBy(*keys).transformWithState(_Processor(operator, is_combined), schema, output_mode, "None")
    return (results if not name else _observe(results, operator, name)).drop(ROWS)


def _operator(rows: DataFrame, keys: tuple[str, ...], merging: Merging, state: str, result: str) -> Operator:
    if merging.finish is not None and not result:
        raise ConfigError(
            "finish is given, but result has no columns", where=_WHERE, fix='declare them, such as result="mean DOUBLE"'
        )
    if merging.finish is None and result:
        raise ConfigError("result is given, but finish is not", where=_WHERE, fix="pass finish, or leave result out")
    for name in keys:
        if name not in rows.columns:
            raise ConfigError(
                f"there is no column {name!r}", where=_WHERE, fix=f"choose one of {', '.join(rows.columns)}"
            )
        if rows.schema[name].dataType.typeName() in ("array", "map", "struct", "variant"):
            raise ConfigError(f"the column {name!r} cannot be a key", where=_WHERE, fix=_SIMPLE)
    state_type = _columns(rows, state)
    result_type = _columns(rows, result or state)
    if twice := set(keys) & set(result_type.names):
        raise ConfigError(
            f"{min(twice)!r} is both a key and a result", where=_WHERE, fix="give the result another name"
        )
    return Operator(merging, keys, state_type, result_type)


def _columns(rows: DataFrame, ddl: str) -> StructType:
    try:
        columns = rows.sparkSession._parse_ddl(ddl)
    except Exception as error:
        raise ConfigError(
            f"{ddl!r} does not declare columns", where=_WHERE, fix='write them as "count BIGINT"'
        ) from error
    if not isinstance(columns, StructType) or not columns.names:
        raise ConfigError(f"{ddl!r} does not declare columns", where=_WHERE, fix='write them as "count BIGINT"')
    return columns


def _output(rows: DataFrame, operator: Operator) -> StructType:
    fields = [rows.schema[name] for name in operator.keys]
    return StructType([*fields, *operator.result.fields, StructField(ROWS, LongType())])


def _instances(spread: int | Spread) -> int:
    instances = spread.instances if isinstance(spread, Spread) else spread
    if type(instances) is not int or instances < 1:
        raise ConfigError(f"spread must be a whole number of at least 1, not {instances!r}", where=_WHERE)
    return instances


def _made_up(schema: StructType) -> list[Row]:
    """Rows with a value in every column of a simple type, and None in the others."""
    chance = random.Random(1)
    columns = [examples(field.dataType.typeName(), chance) for field in schema]
    return [
        Row(**{name: next(values, None) for name, values in zip(schema.names, columns, strict=True)})
        for _ in range(_SAMPLES)
    ]


def _sparse(rows: Sequence[Row], keys: Sequence[str]) -> list[Row]:
    """The same rows with None in about half of the columns."""
    chance = random.Random(2)
    return [
        Row(
            **{
                name: value if name in keys or chance.random() < _FILLED else None
                for name, value in row.asDict().items()
            }
        )
        for row in rows
    ]


def _combine(rows: DataFrame, operator: Operator, instances: int) -> DataFrame:
    """Combine the rows of each key on each of `instances` instances. Spark distributes the rows round-robin.

    This needs no knowledge of hot keys, and Spark distributes the same way again if it repeats a task.
    """
    keys = [rows.schema[name] for name in operator.keys]
    schema = StructType([*keys, StructField(PART, BinaryType()), StructField(ROWS, LongType())])
    return rows.repartition(instances).mapInArrow(_adder(operator), schema)


def _adder(operator: Operator) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def add_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        spare_the_collector()
        types: list[pa.DataType] = []
        parts: dict[tuple[Any, ...], Any] = {}
        counts: Counter[tuple[Any, ...]] = Counter()

        def emit() -> pa.RecordBatch:
            keys = [pa.array(column, kind) for column, kind in zip(zip(*parts, strict=True), types, strict=True)]
            pickled_parts = pa.array([pickle.dumps(operator.stored_form(part)) for part in parts.values()], pa.binary())
            rows = pa.array([counts[key] for key in parts], pa.int64())
            return pa.RecordBatch.from_arrays([*keys, pickled_parts, rows], names=[*operator.keys, PART, ROWS])

        for batch in batches:
            types = [batch.schema.field(name).type for name in operator.keys]
            for key, row in _rows(batch, operator.keys):
                part = parts[key] if key in parts else operator.merging.start()
                parts[key] = operator.merging.add(part, row)
                counts[key] += 1
            if len(parts) > _MOST_PARTS:
                yield emit()
                parts, counts = {}, Counter()
        if parts:
            yield emit()

    return add_up


def _rows(batch: pa.RecordBatch, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], Row]]:
    """Rows with the same values as in transformWithState, so that `add` gets the same rows in both cases."""
    make_row, places = Row(*batch.schema.names), [batch.schema.get_field_index(name) for name in keys]
    for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        yield tuple(values[place] for place in places), make_row(*values)


class _Processor(StatefulProcessor):
    """Adds rows to the state of their key, or merges combined parts into it."""

    def __init__(self, operator: Operator, is_combined: bool) -> None:
        self._operator, self._combined = operator, is_combined

    def init(self, handle: StatefulProcessorHandle) -> None:
        spare_the_collector()
        self._state = handle.getValueState(STATE, state_columns.stored_types(self._operator.state))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        operator, stored_columns = self._operator, self._state.get()
        merging = operator.merging
        part = merging.start() if stored_columns is None else operator.unpack(stored_columns)
        count = 0
        for row in rows:
            if self._combined:
                part = merging.merge(part, pickle.loads(row[PART]))
                count += row[ROWS]
            else:
                part = merging.add(part, row)
                count += 1
        self._state.update(operator.pack(part))
        yield operator.result_row(key, part, count)

    def close(self) -> None:
        """Nothing to release."""


def _observe(results: DataFrame, operator: Operator, name: str) -> DataFrame:
    """Report how many rows the batch had, and how many its largest keys had.

    The operator sees all rows of a key together, so exact counts cost one comparison per key.
    """
    return results.observe(
        KEYS_METRIC + name,
        f.sum(ROWS).alias("rows"),
        f.max(ROWS).alias("largest"),
        f.max_by(key_text(operator.keys), f.col(ROWS)).alias("key"),
        *_most(results.sparkSession.version),
    )


def _most(version: str) -> list[Column]:
    """The rows of the largest keys as one string, largest first. Spark before 4.2 can report only one."""
    if release(version) < (4, 2):
        return []
    rows = f.col(ROWS)
    return [f.array_join(f.max_by(rows.cast("string"), rows, MOST_KEYS), " ").alias("most")]
