"""A Kafka sink that gives each row a name, so that a reader can drop duplicates.

Spark writes to Kafka at least once: a batch that is repeated after a failure writes its rows again. The name of a row
stays the same when the batch is repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

# The header that holds the name of a row: query, epoch and row.
ROW_NAME = "homeostat-row"
_QUERY_ID = "sql.streaming.queryId"
_VALUE, _KEY, _HEADERS = "value", "key", "headers"


def kafka_sink(
    rows: DataFrame, servers: str, topic: str, *, id: Sequence[str] = (), options: Mapping[str, str] | None = None
) -> DataStreamWriter:
    """A writer of `rows` to a topic. As for Spark's own sink, they need the column `value` and may have `key`.

    `id` has the columns that together identify a row within its batch. Without them, rows are identified by their
    content, and equal rows are numbered, which takes a shuffle. A row without a `key` gets its name as the key.
    `options`, such as `kafka.security.protocol`, go to Spark's sink.
    """
    names = (id,) if isinstance(id, str) else tuple(id)
    missing = [name for name in (_VALUE, *names) if name not in rows.columns]
    if missing:
        raise ConfigError(f"the rows have no column {missing[0]!r}", where="kafka_sink", fix="select it")

    def write(batch: DataFrame, epoch: int) -> None:
        named_rows = _named(batch, query_id(batch), epoch, names)
        writer = named_rows.write.format("kafka").options(**dict(options or {}))
        writer.option("kafka.bootstrap.servers", servers).option("topic", topic).option("includeHeaders", "true").save()

    return rows.writeStream.foreachBatch(write)


def query_id(batch: DataFrame) -> str:
    """The id of the query, which belongs to its checkpoint. With a new checkpoint, the epochs start again at 0."""
    id = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if not id:
        raise ConfigError("the id of the query is unknown", where="kafka_sink", fix="use it as the sink of a query")
    return str(id)


def _named(batch: DataFrame, query: str, epoch: int, id: Sequence[str]) -> DataFrame:
    """The rows with their names in a header. A row without a key gets its name as the key."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    if id:
        row: Any = f.concat_ws("/", *(f.col(name).cast("string") for name in id))
    else:
        # Rows with the same content are interchangeable, so numbering them gives the same names in every repetition.
        content = f.xxhash64(*batch.columns)
        alike = f.row_number().over(Window.partitionBy(*batch.columns).orderBy(f.lit(1)))
        row = f.concat_ws("-", f.hex(content), alike)
    name = f.concat(f.lit(f"{query}/{epoch}/"), row).cast("binary")
    key = f.coalesce(f.col(_KEY).cast("binary"), name) if _KEY in batch.columns else name
    header = f.array(f.struct(f.lit(ROW_NAME).alias("key"), name.alias("value")))
    return batch.select(key.alias(_KEY), f.col(_VALUE).cast("binary").alias(_VALUE), header.alias(_HEADERS))
