"""The keys of any rows, by a sketch of bounded memory: which are the largest, and how many rows they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from homeostat.core.errors import ConfigError
from homeostat.spark.sense.progress import KEYS_METRIC
from homeostat.spark_release import release

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOST_KEYS = 8  # told of a batch
_SINCE = (4, 1)
_TRACKED = 4096  # what is not among them has less than a thousandth of the rows


def watched(rows: DataFrame, name: str, keys: Sequence[str]) -> DataFrame:
    """The same rows; the progress of the query tells their largest keys, by Spark's own `approx_top_k`."""
    where = f"ctx.watched({name!r})"
    for key in keys:
        if key not in rows.columns:
            raise ConfigError(f"there is no column {key!r}", where=where, fix=f"one of {', '.join(rows.columns)}")
    version = rows.sparkSession.version
    if release(version) < _SINCE:
        raise ConfigError(
            f"Spark {version} has no sketch of the largest keys", where=where, fix="use Spark 4.1 or later"
        )
    top = f.call_function("approx_top_k", key_text(keys), f.lit(MOST_KEYS), f.lit(_TRACKED))
    return rows.observe(KEYS_METRIC + name, f.count(f.lit(1)).alias("rows"), f.to_json(top).alias("top"))


def key_text(keys: Sequence[str]) -> Column:
    return f.concat_ws(", ", *(f.coalesce(f.col(key).cast("string"), f.lit("null")) for key in keys))
