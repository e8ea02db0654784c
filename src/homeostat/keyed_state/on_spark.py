# ruff: noqa: N802, N803 - Spark's own names
"""Runs a State as a stateful processor of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.group import GroupedData
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from homeostat.core.errors import ConfigError
from homeostat.keyed_state.column_types import column_names
from homeostat.keyed_state.program import EVENT, Runtime, StateProgram, time_mode

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def require_rocksdb(session: SparkSession, where: str) -> None:
    if session.conf.get(PROVIDER) != ROCKSDB:
        raise ConfigError(
            "Spark requires the RocksDB state store for this state",
            where=where,
            fix=f'set spark.conf.set("{PROVIDER}", "{ROCKSDB}")',
        )


def over(state: StateProgram, grouped: GroupedData) -> DataFrame:
    require_rocksdb(grouped.session, type(state).__name__)
    return grouped.transformWithState(Processor(state), state.emits, "Append", time_mode(type(state)))


class Processor(StatefulProcessor):
    def __init__(self, state: StateProgram) -> None:
        self._state = state
        self._row = Row(*column_names(state.emits))

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._runtime = Runtime(copy(self._state), handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
        return self._rows(self._runtime.rows(key, rows, self._now_ms(timerValues)))

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        at_ms = expiredTimerInfo.getExpiryTimeInMs()
        return self._rows(self._runtime.timer(key, at_ms, self._now_ms(timerValues)))

    def close(self) -> None: ...

    def _rows(self, tuples: Iterator[tuple[Any, ...]]) -> Iterator[Row]:
        return (self._row(*row) for row in tuples)

    def _now_ms(self, timers: TimerValues) -> int:
        if self._state.time == EVENT:
            return timers.getCurrentWatermarkInMs()
        return timers.getCurrentProcessingTimeInMs()
