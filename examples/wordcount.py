"""A word count that Homeostat starts, regulates and starts again:

    homeostat run examples/wordcount.py

The knobs come from `ctx`, so that they can be changed: the number of partitions that `split` works in, and what
`read_stream` adds to the source. The rest is Spark as usual.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import homeostat as hs

if TYPE_CHECKING:
    import pandas as pd

LINES_PER_S = 200
TEXT = "to be or not to be"


def lines(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """A line of text for each row; it runs on the executors."""
    for batch in batches:
        yield batch.assign(line=TEXT)[["line"]]


@hs.pipeline(objective=hs.Throughput(at_least=LINES_PER_S), trigger="2 s", executors=2, state_partitions=4)
def wordcount(ctx: hs.Context) -> Any:
    rows = ctx.read_stream("rate").option("rowsPerSecond", LINES_PER_S).load()
    text = rows.repartition(ctx.parallelism("split", start=2)).mapInPandas(lines, "line string")
    words = text.selectExpr("explode(split(line, ' ')) AS word")
    return words.groupBy("word").count().writeStream.outputMode("update").format("console")
