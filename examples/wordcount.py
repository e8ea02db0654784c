"""A word count that Homeostat starts, regulates and restarts:

    homeostat run examples/wordcount.py

`ctx` provides the settings that Homeostat can change: the number of partitions of `split`, and the options that
`read_stream` adds to the source. The rest is ordinary Spark code.
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
    """Replace each row by a line of text. This runs on the executors."""
    for batch in batches:
        yield batch.assign(line=TEXT)[["line"]]


@hs.pipeline(objective=hs.Throughput(at_least=LINES_PER_S), trigger="2 s", executors=2, state_partitions=4)
def wordcount(ctx: hs.Context) -> Any:
    rows = ctx.read_stream("rate").option("rowsPerSecond", LINES_PER_S).load()
    text = rows.repartition(ctx.parallelism("split", start=2)).mapInPandas(lines, "line string")
    words = text.selectExpr("explode(split(line, ' ')) AS word")
    return words.groupBy("word").count().writeStream.outputMode("update").format("console")
