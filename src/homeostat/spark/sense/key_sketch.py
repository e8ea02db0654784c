"""The largest keys of a stream and their numbers of rows, by a sketch with bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from homeostat.core.errors import ConfigError
from homeostat.spark.sense.progress import KEYS_METRIC
from homeostat.spark_release import release

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOST_KEYS = 8  # reported per batch. A choice: in a query with more hot keys than this, no key stands out
_SINCE = (4, 1)  # the release of Spark that brought approx_top_k
_TRACKED = 4096  # keys in the sketch: one that is left out has less than a thousandth of the rows


def watch_keys(rows: DataFrame, name: str, keys: Sequence[str]) -> DataFrame:
    """The same rows. The query's progress then reports their largest keys, from Spark's `approx_top_k`."""
    where = f"ctx.watched({name!r})"
    for key in keys:
        if key not in rows.columns:
            raise ConfigError(f"unknown column {key!r}", where=where, fix=f"use one of {', '.join(rows.columns)}")
    version = rows.sparkSession.version
    if release(version) < _SINCE:
        raise ConfigError(f"Spark {version} cannot sketch the largest keys", where=where, fix="use Spark 4.1 or newer")
    top = f.call_function("approx_top_k", key_text(keys), f.lit(MOST_KEYS), f.lit(_TRACKED))
    return rows.observe(KEYS_METRIC + name, f.count(f.lit(1)).alias("rows"), f.to_json(top).alias("top"))


def key_text(keys: Sequence[str]) -> Column:
    return f.concat_ws(", ", *(f.coalesce(f.col(key).cast("string"), f.lit("null")) for key in keys))
