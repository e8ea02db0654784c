"""Publishes how far queries have read, as the committed offsets of a consumer group, so that other tools see the lag.

Spark keeps offsets in its checkpoint and commits none. Homeostat commits them for a group without members, in its own
thread. Spark never reads them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.kafka_source import KafkaSource, read_offsets

QUERY = "{query}"
# After a failure, the next attempt follows after _RETRY_S, so that a broker that refuses does not delay the looks at
# sources. A failure is reported once it has lasted for _PATIENCE_S: a broker that has just started refuses for a
# moment. Choices.
_RETRY_S, _PATIENCE_S = 5.0, 30.0
_WHERE = "consumer groups"

Reader = tuple[str, int]  # a query and the number of its source


class PublishedOffsets:
    """`group` is the name of the group; `{query}` in it stands for the name of the query."""

    def __init__(self, group: str, guard: GuardedWork, now_s: Callable[[], float]) -> None:
        self._group, self._guard, self._now_s = group, guard, now_s
        self._published: dict[Reader, Any] = {}
        self._owners: dict[tuple[str, str, str], Reader] = {}
        self._failing_since_s: dict[Reader, float] = {}
        self._retry_s: dict[Reader, float] = {}

    def publish(self, reader: Reader, source: KafkaSource, offset: Any) -> None:
        """`offset` is where the latest batch of the query ended, as Spark reports it; None before the first one."""
        offsets, now_s = read_offsets(offset), self._now_s()
        if not offsets or self._published.get(reader) == offsets or now_s < self._retry_s.get(reader, -math.inf):
            return
        group = self._group.replace(QUERY, reader[0])
        for topic in {topic for topic, _ in offsets}:
            owner = self._owners.setdefault((source.servers, group, topic), reader)
            if owner != reader:
                self._guard.note(
                    _WHERE,
                    f"{topic} is read by query {owner[0]} and by query {reader[0]}: group {group} shows only the "
                    f"offsets of {owner[0]}; put {QUERY} into publish_group to give each query its own group",
                )
                return
        try:
            source.publish(group, offsets)
        except Exception as error:
            self._retry_s[reader] = self._now_s() + _RETRY_S
            if now_s - self._failing_since_s.setdefault(reader, now_s) >= _PATIENCE_S:
                self._guard.note(_WHERE, f"the offsets of {reader[0]} cannot be committed for group {group}: {error}")
        else:
            self._published[reader] = offsets
            self._failing_since_s.pop(reader, None)
