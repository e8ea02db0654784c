"""Reads a topic that `hs.kafka_sink` wrote, and reports lost and duplicated rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from homeostat.lab.kafka.topics import Topics
from homeostat.spark.kafka_sink import ROW_NAME

MOST_DIFFERENCES = 20  # a choice: enough to see a pattern, few enough to read


@dataclass(frozen=True, slots=True)
class TopicLedger:
    """`values` counts the rows by value, each name once. `repeated` counts the rows that a reader drops. `unnamed`
    counts rows without a name, and `reused` rows whose name belongs to a row with another value: both must be 0."""

    values: Counter[bytes]
    repeated: int
    unnamed: int
    reused: int

    def differences(self, expected: Iterable[bytes | str]) -> list[str]:
        """How the rows differ from those that were expected; empty if each came exactly once."""
        expected_counts = Counter(value.encode() if isinstance(value, str) else value for value in expected)
        problems = [f"{self.unnamed} rows have no name"] * bool(self.unnamed)
        problems += [f"{self.reused} names stand for more than one row"] * bool(self.reused)
        for value in sorted(expected_counts.keys() | self.values.keys()):
            if self.values[value] != expected_counts[value]:
                problems.append(f"{value!r}: received {self.values[value]} times instead of {expected_counts[value]}")
        left_out = len(problems) - MOST_DIFFERENCES
        return problems if left_out <= 0 else [*problems[:MOST_DIFFERENCES], f"and {left_out} more"]


def read_ledger(topics: Topics, name: str) -> TopicLedger:
    """Every row that the topic has now, by the names that the sink gave."""
    values_by_name: dict[bytes, bytes | None] = {}
    repeated = unnamed = reused = 0
    for row in topics.rows(name):
        row_name = dict(row.headers).get(ROW_NAME)
        if row_name is None:
            unnamed += 1
        elif row_name not in values_by_name:
            values_by_name[row_name] = row.value
        elif values_by_name[row_name] == row.value:
            repeated += 1
        else:
            reused += 1
    return TopicLedger(Counter(value or b"" for value in values_by_name.values()), repeated, unnamed, reused)
