"""The application of the demonstrations and experiments: a word count whose first stage sleeps for each row.

Sleeping scales with the number of executors on any machine. Using the CPU would only measure the number of cores.
"""

from __future__ import annotations

import json
import operator
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import Value
from homeostat.core.objective import Objective
from homeostat.lab.faults import hang_while
from homeostat.lab.ledger import write_counts
from homeostat.lab.load_profile import Profile
from homeostat.lab.row_ledger import MARK_COLUMNS, MARK_KEY, write_marks
from homeostat.lab.source_registration import FORMAT
from homeostat.spark.pipeline import Context, Pipeline
from homeostat.spark.python_workers import spare_the_collector

if TYPE_CHECKING:
    from pandas import DataFrame as Pandas
    from pyspark.sql import DataFrame

NAME = "wordcount"
# A busy machine ends a sleep milliseconds late. With fewer, longer sleeps, rows take the intended time.
ROWS_A_WAIT = 10
TURNS_PER_S = 20_000_000  # of an empty loop on a core of its own, roughly
APP = '''\
"""Written by Homeostat: see homeostat.lab.wordcount."""

from homeostat.lab.wordcount import application

wordcount = application({specification!r})
'''


@dataclass(frozen=True, slots=True)
class WordCount:
    """The options of the word count.

    `wait_ms` is the sleep for each row. With `keyed`, the sleep comes after a shuffle by word without partial
    aggregation, so that a hot word makes one task slow. With `own_state`, it comes in `hs.keyed`, which then counts the
    words. With `burn`, the stage uses the CPU instead of sleeping, for about as long if it has a core to itself.
    `first_share` is the share of rows in the first partition of the source; rows can then be rebalanced. The sink waits
    while `hang_file` exists. `start_s` is the start of the profile, by default the first batch. With `by_row`, the rows
    are marked one by one instead of counted by word, so that the ledger shows which were lost or counted twice. With
    `servers`, the words are the values of a Kafka topic, and the options of the experiment source have no effect.
    """

    profile: str
    ledger: str
    objective: dict[str, float | None]
    wait_ms: float = 1.1  # measured: a sleep of 1 ms takes this long on a quiet machine; the loads suit it
    keyed: bool = False
    own_state: bool = False
    burn: bool = False
    trigger_s: float = 2.0
    executors: int = 2
    source_partitions: int = 8
    state_partitions: int = 4
    rows_per_trigger: int | None = None
    first_share: float = 0.0
    hang_file: str = ""
    start_s: float | None = None
    by_row: bool = False
    servers: str = ""
    topic: str = ""


def specification(profile: Profile, ledger: Path, objective: Objective | None = None, **rest: Any) -> WordCount:
    return WordCount(profile.to_json(), str(ledger), asdict(objective or Objective()), **rest)


def write_app(path: Path, spec: WordCount) -> Path:
    """Write an application file that `homeostat run` can start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(APP.format(specification=json.dumps(asdict(spec))))
    return path


def application(specification: str) -> Pipeline:
    return pipeline_of(WordCount(**json.loads(specification)))


def pipeline_of(spec: WordCount) -> Pipeline:
    start: dict[str, Value] = {
        "executors": spec.executors,
        "source_partitions": spec.source_partitions,
        "state_partitions": spec.state_partitions,
    }
    if spec.rows_per_trigger is not None:
        start["rows_per_trigger"] = spec.rows_per_trigger

    def build(ctx: Context) -> Any:
        rows = _from_kafka(spec, ctx) if spec.servers else _from_experiment(spec, ctx)
        counts = _own_count(rows, spec, ctx) if spec.own_state else _count(rows, spec)
        return counts.writeStream.outputMode("update").foreachBatch(_sink(spec))

    return Pipeline(NAME, build, Objective(**spec.objective), spec.trigger_s, start)


def _from_experiment(spec: WordCount, ctx: Context) -> DataFrame:
    source = ctx.read_stream(FORMAT).option("profile", spec.profile).option("firstShare", spec.first_share)
    rows = (source if spec.start_s is None else source.option("start", repr(spec.start_s))).load()
    return ctx.rebalanced(rows, "deal") if spec.first_share else rows


def _from_kafka(spec: WordCount, ctx: Context) -> DataFrame:
    source = ctx.read_stream("kafka").option("kafka.bootstrap.servers", spec.servers).option("subscribe", spec.topic)
    return source.option("startingOffsets", "earliest").load().selectExpr("CAST(value AS STRING) AS word")


def _count(rows: DataFrame, spec: WordCount) -> DataFrame:
    if spec.keyed:
        rows = rows.repartition("word")
    seconds = spec.wait_ms / 1000.0
    if spec.by_row:
        from pyspark.sql.functions import expr

        keyed_rows = rows.selectExpr(f"{MARK_KEY} AS word", "row")
        words = keyed_rows.mapInPandas(worker(seconds, spec.burn, ("word", "row")), "word string, row long")
        return words.groupBy("word").agg(*(expr(what).alias(name) for name, what in MARK_COLUMNS.items()))
    words = rows.mapInPandas(worker(seconds, spec.burn), "word string")
    return words.groupBy("word").count()


def _own_count(rows: DataFrame, spec: WordCount, ctx: Context) -> DataFrame:
    from homeostat.keyed_state.operator import keyed

    seconds = spec.wait_ms / 1000.0

    def add(count: int, row: object) -> int:
        time.sleep(seconds)
        return count + 1

    return keyed(
        rows.select("word"),
        key="word",
        zero=0,
        add=add,
        merge=operator.add,
        state="count BIGINT",
        spread=ctx.spread("count"),
    )


def worker(
    seconds: float, burn: bool = False, columns: Sequence[str] = ("word",)
) -> Callable[[Iterator[Pandas]], Iterator[Pandas]]:
    """The first stage, which takes `seconds` for each row on average, and passes on these columns."""

    def work(batches: Iterator[Pandas]) -> Iterator[Pandas]:
        spare_the_collector()
        for batch in batches:
            for first in range(0, len(batch), ROWS_A_WAIT):
                rows = min(ROWS_A_WAIT, len(batch) - first)
                if burn:
                    for _ in range(round(rows * seconds * TURNS_PER_S)):
                        pass
                else:
                    time.sleep(rows * seconds)
            yield batch[list(columns)]

    return work


def _sink(spec: WordCount) -> Callable[[Any, int], None]:
    write = write_marks(spec.ledger) if spec.by_row else write_counts(spec.ledger)
    return hang_while(Path(spec.hang_file), write) if spec.hang_file else write
