"""One Kafka source of a query: the answers of its brokers over time, as samples."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.core.observation import NAN
from homeostat.core.source_sample import SourcePartition, SourceSample
from homeostat.spark.sense.arrival_times import ArrivalTimes
from homeostat.spark.sense.kafka_client import KafkaClient, Place, TopicState

# Topics, their leaders and settings change rarely; offsets all the time. Choices.
TOPICS_EVERY_S, SETTINGS_EVERY_S = 5.0, 60.0
# The arrival rate is measured over these seconds: shorter follows bursts, longer is steadier. A choice.
RATE_OVER_S = 10.0
# If a backlog is older than the first observation, Homeostat tries these ages, the shortest first.
_AGES_S = (
    1.0,
    5.0,
    15.0,
    60.0,
    300.0,
    900.0,
    3_600.0,
    4 * 3_600.0,
    86_400.0,
    3 * 86_400.0,
    7 * 86_400.0,
    30 * 86_400.0,
)
# The age of the oldest unread row is looked up again until it is known to within this share. A choice.
_AGE_ERROR = 0.1
_SURE_S = 2.0  # looks are a second apart, so the age cannot be known more precisely


# Kafka deletes rows one segment at a time, so the pace of deletion is measured over minutes. A choice.
KEPT_OVER_S = 600.0
# The fewest steps of deletion from which a pace is measured. A choice: one step is not enough.
_LEAST_STEPS = 2


@dataclass(slots=True)
class _Partition:
    """Where the end, the oldest row and the reader of a partition were, and when."""

    ends: ArrivalTimes = field(default_factory=ArrivalTimes)
    firsts: ArrivalTimes = field(default_factory=ArrivalTimes)
    reads: ArrivalTimes = field(default_factory=ArrivalTimes)
    ages_tried: int = 0

    def overtaken_s(self, now_s: float) -> float:
        """When deletion reaches unread rows at the present rates; infinite if it does not."""
        if (
            not self.reads.ends
            or len(set(self.firsts.ends)) <= _LEAST_STEPS
            or self.ends.ends[-1] <= self.reads.ends[-1]
        ):
            return math.inf
        rate = self.firsts.rate_per_s(now_s, KEPT_OVER_S) - self.reads.rate_per_s(now_s, KEPT_OVER_S)
        ahead = self.reads.ends[-1] - self.firsts.ends[-1]
        return ahead / rate if rate > 0 and ahead > 0 else math.inf


class KafkaSource:
    """`look` asks the brokers, and may take seconds. `now_s` is the steady clock, `ask` the client."""

    def __init__(self, query: str, name: str, ask: KafkaClient, now_s: Callable[[], float]) -> None:
        self.query, self.name = query, name
        self._ask, self._now_s = ask, now_s
        self._partitions: dict[Place, _Partition] = {}
        self._topics, self._topics_s = TopicState(), -math.inf
        self._kept_s, self._settings_s = NAN, -math.inf
        self._newest_s = NAN
        self._answered_s = now_s()
        self._lock = threading.Lock()  # guards the partitions, which the end of a batch reads from another thread
        self.latest: SourceSample | None = None

    @property
    def servers(self) -> str:
        return self._ask.servers

    def publish(self, group: str, offsets: Mapping[Place, float]) -> None:
        """Commit offsets for a group without members. Raises the errors of the client."""
        self._ask.publish(group, offsets)

    def look(self, offset: Any, rows_per_offset: float) -> SourceSample:
        """`offset` is where the latest batch ended, as Spark reports it; None before the first one."""
        try:
            self.latest = self._answer(read_offsets(offset), rows_per_offset)
        except Exception as error:
            self._topics_s = -math.inf
            self.latest = self._no_answer(error)
        return self.latest

    def end_at(self, at_s: float) -> float:
        """The sum of the ends of all partitions at a moment; NaN if one of them is unknown."""
        with self._lock:
            if not self._partitions or at_s > self._answered_s + RATE_OVER_S:
                return NAN
            return math.fsum(partition.ends.end_at(at_s) for partition in self._partitions.values())

    def _answer(self, read: Mapping[Place, float], rows_per_offset: float) -> SourceSample:
        began_s = self._now_s()
        looks_at_topics = began_s - self._topics_s >= TOPICS_EVERY_S
        if looks_at_topics:
            self._topics, self._topics_s = self._ask.topics(), began_s
        led = [place for place, has_leader in self._topics.leaders.items() if has_leader]
        if looks_at_topics:
            self._newest_s = self._newest(led)
        firsts, ends = self._ask.firsts(led), self._ask.ends(led)
        now_s = self._answered_s = self._now_s()
        with self._lock:
            self._forget(set(self._topics.leaders))
            for place in led:
                partition = self._partitions.setdefault(place, _Partition())
                partition.ends.add(now_s, ends[place])
                partition.firsts.add(now_s, firsts[place])
                if place in read:
                    partition.reads.add(now_s, read[place])
        self._look_back(read, firsts, now_s)
        if now_s - self._settings_s >= SETTINGS_EVERY_S:
            self._settings_s = now_s
            self._kept_s = self._kept()
        partitions = tuple(self._sample(place, read, firsts, now_s) for place in sorted(self._topics.leaders))
        listed = {topic for topic, _ in self._topics.leaders}
        # A pattern does not name topics that were deleted, but earlier batches have read them.
        missing_topics = {*self._topics.missing_topics, *(topic for topic, _ in read if topic not in listed)}
        overtaken_s = min((partition.overtaken_s(now_s) for partition in self._partitions.values()), default=math.inf)
        return SourceSample(
            self.query,
            self.name,
            now_s,
            partitions,
            rows_per_offset,
            missing_topics=tuple(sorted(missing_topics)),
            keep_s=self._kept_s,
            overtaken_s=overtaken_s if math.isfinite(overtaken_s) else NAN,
            newest_s=self._newest_s,
        )

    def _no_answer(self, error: Exception) -> SourceSample:
        now_s = self._now_s()
        before = self.latest
        reason = _reason(error)
        return SourceSample(
            self.query,
            self.name,
            now_s,
            before.partitions if before is not None else (),
            before.rows_per_offset if before is not None else 1.0,
            silent_s=max(now_s - self._answered_s, 0.001),
            error=reason,
            keep_s=self._kept_s,
        )

    def _sample(
        self, place: Place, read: Mapping[Place, float], firsts: Mapping[Place, float], now_s: float
    ) -> SourcePartition:
        times = self._partitions[place].ends if place in self._partitions else ArrivalTimes()
        first = firsts.get(place, NAN)
        # Spark reads a new partition from its beginning.
        at = read.get(place, first if read else NAN)
        unread = max(at, first) if math.isfinite(first) else at
        return SourcePartition(
            f"{place[0]}-{place[1]}",
            first,
            at,
            times.ends[-1] if times.ends else NAN,
            times.lag_s(unread, now_s) if math.isfinite(unread) else NAN,
            times.rate_per_s(now_s, RATE_OVER_S),
            self._topics.leaders[place],
        )

    def _look_back(self, read: Mapping[Place, float], firsts: Mapping[Place, float], now_s: float) -> None:
        """Ask the brokers when the oldest unread rows arrived, at most once per partition in each look."""
        moments_s: dict[Place, float] = {}
        for place, partition in self._partitions.items():
            times, offset = partition.ends, max(read.get(place, NAN), firsts.get(place, NAN))
            if math.isnan(offset) or not times.ends or offset >= times.ends[-1]:
                continue
            if offset < times.ends[0] and partition.ages_tried < len(_AGES_S):
                moments_s[place] = times.moments_s[0] - _AGES_S[partition.ages_tried]
                partition.ages_tried += 1
            elif (doubt := times.doubt(offset)) is not None:
                width_s = doubt[1] - doubt[0]
                if width_s > max(_SURE_S, _AGE_ERROR * (now_s - doubt[0])):
                    moments_s[place] = (doubt[0] + doubt[1]) / 2
        offsets = self._ask.ends_at(moments_s)
        with self._lock:
            for place, offset in offsets.items():
                if math.isfinite(offset):
                    self._partitions[place].ends.add(moments_s[place], offset)

    def _newest(self, places: Collection[Place]) -> float:
        try:
            return self._ask.newest_s(places)
        except Exception:  # brokers before Kafka 3.0 cannot answer this
            return NAN

    def _kept(self) -> float:
        try:
            return self._ask.kept_s({topic for topic, _ in self._topics.leaders})
        except Exception:  # describing a topic needs a permission of its own, which a reader may lack
            return NAN

    def _forget(self, places: set[Place]) -> None:
        for place in self._partitions.keys() - places:
            del self._partitions[place]


def read_offsets(offset: Any) -> dict[Place, float]:
    """Spark's offset of a Kafka source, by partition; empty if it is the offset of another source.

    >>> read_offsets({"orders": {"0": 7}})
    {('orders', 0): 7.0}
    """
    if not isinstance(offset, Mapping):
        return {}
    return {
        (str(topic), int(partition)): float(number)
        for topic, partitions in offset.items()
        if isinstance(partitions, Mapping)
        for partition, number in partitions.items()
    }


def _reason(error: Exception) -> str:
    """The message of librdkafka, without its codes."""
    first = error.args[0] if error.args else error
    text = getattr(first, "str", None)
    return str(text() if callable(text) else error).strip().splitlines()[0][:120] if str(error) else ""
