"""Tells Homeostat how to handle the experiment source. Import this module before you read from it.

It does not import PySpark, so that commands that only prepare an experiment start quickly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from homeostat.core.observation import NAN
from homeostat.lab import source_control
from homeostat.lab.source_control import FORMAT
from homeostat.spark.sense.source_formats import SourceFormat, SourceOptions, SourcePosition, register
from homeostat.spark.sense.source_offsets import is_number

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FORMAT", "arrived_rows"]


def arrived_rows(source: SourceOptions, position: SourcePosition, at_s: float) -> float:
    """The rows that have arrived, computed from the profile in the options; NaN before the first batch, because its
    offset has the start of the profile."""
    offset = position.offset
    if not isinstance(offset, Mapping) or not is_number(offset.get("started_s")):
        return NAN
    return float(source_control.latest_row(source.options, at_s, float(offset["started_s"])))


def _prepare(spark: SparkSession) -> None:
    from homeostat.lab.source import register as register_source

    register_source(spark)


register(
    FORMAT,
    SourceFormat(
        bound_option="rowsPerTrigger",
        partitions_option="partitions",
        arrived_rows=arrived_rows,
        prepare=_prepare,
        control_option="control",
    ),
)
