"""The downtime detector of the page on states: Spark's own and ours, side by side, emit the same."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from examples.downtime import DownTimeDetector

from homeostat.testing import Rehearsal
from support.paths import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAGE = (ROOT / "docs" / "how-to" / "write-stateful-code.md").read_text(encoding="utf-8")


def code(name: str) -> str:
    return (ROOT / "examples" / name).read_text(encoding="utf-8")


def detector(block: str) -> bool:
    return block.startswith("class DownTimeDetector")


def test_the_page_shows_both_as_they_are_and_ours_is_a_third() -> None:
    spark, ours = filter(detector, re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S))
    assert spark in code("downtime_spark.py")
    assert ours in code("downtime.py")
    assert ours.count("\n") <= 16
    assert spark.count("\n") >= 40


def test_the_test_that_the_page_shows_passes() -> None:
    (example,) = re.findall(r"^```python\n(from homeostat.testing import Rehearsal\n.*?)^```", PAGE, re.M | re.S)
    names: dict[str, Any] = {"DownTimeDetector": DownTimeDetector, "datetime": datetime, "UTC": UTC}
    exec(example, names)
    names["test_silence_is_reported"]()


STEPS = ((0, "a"), (2, "b"), (3, "a"), (7, ""), (8, ""), (9, "b"), (20, ""), (40, "a"), (60, ""))


def test_both_emit_the_same_in_memory() -> None:
    """Spark's with Spark's own tester, step by step: at this second this sensor sends, or none does."""
    pytest.importorskip("pyspark", reason="it is Spark's own example")
    from examples.downtime_spark import DownTimeDetector as SparksOwn
    from pyspark.sql import Row
    from pyspark.sql.streaming.tws_tester import TwsTester

    tester, rehearsal = TwsTester(SparksOwn(), timeMode="ProcessingTime"), Rehearsal(DownTimeDetector(), key="id")
    emitted, before = 0, 0
    for second, sensor in STEPS:
        sent = [{"id": sensor, "timestamp": datetime.fromtimestamp(second, UTC)}] if sensor else []
        sparks = [tuple(row) for row in tester.setProcessingTime(1000 * second)] if second else []
        ours = rehearsal.advance(f"{second - before} s") if second else []
        assert sorted(ours) == sorted(sparks)
        for row in sent:
            tester.test(sensor, [Row(**row)])
            rehearsal.feed(row)
        emitted, before = emitted + len(ours), second
    assert emitted >= 6


def test_both_emit_the_same_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    """In one query, so that both see the same clock; it ends when each has told of every sensor."""
    from pyspark import cloudpickle
    from pyspark.sql.functions import lit

    from examples import downtime, downtime_spark

    for module in (downtime, downtime_spark):
        by_value: Any = cloudpickle.register_pickle_by_value
        by_value(module)
    (tmp_path / "source").mkdir()
    sent = [{"id": sensor, "timestamp": f"2026-01-01T00:00:0{second}Z"} for second, sensor in enumerate("aba")]
    (tmp_path / "source" / "sent.json").write_text("\n".join(map(json.dumps, sent)))
    rows = spark.readStream.schema("id STRING, timestamp TIMESTAMP").json((tmp_path / "source").as_uri()).groupBy("id")
    sparks = rows.transformWithState(
        downtime_spark.DownTimeDetector(), DownTimeDetector.emits, "Append", "ProcessingTime"
    )
    both = (
        DownTimeDetector().over(rows).withColumn("whose", lit("ours")).union(sparks.withColumn("whose", lit("spark")))
    )
    emitted_rows: set[tuple[str, int, str, str]] = set()

    def keep(out: DataFrame, batch: int) -> None:
        emitted_rows.update((row.whose, batch, row.id, row.timeValues) for row in out.collect())

    def of(whose: str) -> set[tuple[int, str, str]]:
        return {(batch, sensor, silent) for by, batch, sensor, silent in emitted_rows if by == whose}

    query = both.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    while {(whose, sensor) for whose, _, sensor, _ in emitted_rows} < {(w, s) for w in ("ours", "spark") for s in "ab"}:
        query.awaitTermination(1)
    query.stop()
    assert of("ours") == of("spark")
