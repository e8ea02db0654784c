"""Checkpoints of this Spark, laid out as earlier releases did: their state files have the same format."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

# What Spark 3.5 logs with every batch, and what 2.4 did.
SETTINGS_OF_3_5 = (
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.join.stateFormatVersion",
    "spark.sql.streaming.stateStore.compression.codec",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion",
    "spark.sql.streaming.statefulOperator.useStrictDistribution",
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion",
    "spark.sql.streaming.multipleWatermarkPolicy",
    "spark.sql.streaming.aggregation.stateFormatVersion",
    "spark.sql.shuffle.partitions",
)
SETTINGS_OF_2_4 = (SETTINGS_OF_3_5[0], *SETTINGS_OF_3_5[5:])


def as_spark_3_5(checkpoint: Path) -> Path:
    """Without the metadata of operators, which Spark writes since 4.0."""
    _keep(checkpoint, SETTINGS_OF_3_5)
    for operator in (checkpoint / "state").iterdir():
        shutil.rmtree(operator / "_metadata")
    return checkpoint


def as_spark_2_4(checkpoint: Path) -> Path:
    """Without schemas of the state as well, which Spark writes since 3.1."""
    as_spark_3_5(checkpoint)
    _keep(checkpoint, SETTINGS_OF_2_4)
    for schemas in (checkpoint / "state").rglob("_metadata"):
        shutil.rmtree(schemas)
    return checkpoint


def as_spark_2_1(checkpoint: Path) -> Path:
    """Without settings and without a log of commits as well."""
    as_spark_2_4(checkpoint)
    _keep(checkpoint, ())
    shutil.rmtree(checkpoint / "commits")
    return checkpoint


def _keep(checkpoint: Path, settings: tuple[str, ...]) -> None:
    for log in (checkpoint / "offsets").iterdir():
        if not log.name.isdigit():
            log.unlink()  # the checksum of what is changed here
            continue
        version, metadata, *sources = log.read_text().splitlines()
        header = json.loads(metadata)
        conf = (
            {name: value for name, value in header.pop("conf").items() if name in settings} if "conf" in header else {}
        )
        log.write_text("\n".join([version, json.dumps(header | ({"conf": conf} if settings else {})), *sources]))
