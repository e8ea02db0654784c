"""The rows of the demonstration in a topic: they follow the load, and offsets say which of them were read."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from homeostat.core.errors import HomeostatError
from homeostat.lab.demonstration_feed import PARTITIONS, PROFILE, checkpoint_of, ledger_of
from homeostat.lab.kafka.feed import TOPIC, KafkaFeed, counts_until, require_kafka
from homeostat.lab.kafka.topics import Topics

WaitUntil = Callable[[Callable[[], bool], str], None]


def ignore(line: str) -> None: ...


def write_checkpoint(directory: Path, batch_id: int, ends: dict[int, int], *, committed: bool) -> None:
    checkpoint = checkpoint_of(directory)
    for name in ("offsets", "commits"):
        (checkpoint / name).mkdir(parents=True, exist_ok=True)
    offset = json.dumps({TOPIC: {str(partition): end for partition, end in ends.items()}})
    (checkpoint / "offsets" / str(batch_id)).write_text(f"v1\n{{}}\n{offset}")
    if committed:
        (checkpoint / "commits" / str(batch_id)).write_text("v1\n{}")


def failure_of(feed: KafkaFeed) -> str:
    try:
        feed.check()
    except HomeostatError as error:
        return error.line
    return ""


def test_as_many_rows_in_each_partition_are_the_first_rows_of_the_profile() -> None:
    assert counts_until(dict.fromkeys(range(PARTITIONS), 50)) == PROFILE.expected_counts(50 * PARTITIONS)


def test_a_partition_that_is_behind_lacks_its_own_rows() -> None:
    words = PROFILE.words(0, 3 * PARTITIONS).tolist()
    del words[2 * PARTITIONS + 4]
    ends = {partition: 3 - (partition == 4) for partition in range(PARTITIONS)}
    assert counts_until(ends) == Counter(words)


def test_the_offsets_of_the_last_batch_that_is_committed_or_in_the_ledger_count(tmp_path: Path) -> None:
    feed = KafkaFeed(tmp_path)
    assert feed.expected_counts() == {}
    write_checkpoint(tmp_path, 0, {0: 2, 1: 1}, committed=True)
    write_checkpoint(tmp_path, 1, {0: 2, 1: 2}, committed=False)
    assert feed.expected_counts() == counts_until({0: 2, 1: 1})
    ledger_of(tmp_path).mkdir()
    (ledger_of(tmp_path) / "1.parquet").touch()
    assert feed.expected_counts() == counts_until({0: 2, 1: 2})


def test_what_another_demonstration_has_in_the_directory_is_left_alone(tmp_path: Path) -> None:
    kept = tmp_path / "broker" / "data" / "kept"
    kept.parent.mkdir(parents=True)
    kept.touch()
    KafkaFeed(tmp_path).stop()
    assert kept.exists()


def test_the_rows_in_the_topic_follow_the_load_and_are_those_of_the_profile(
    kafka_jars: None, tmp_path: Path, wait_until: WaitUntil
) -> None:
    pytest.importorskip("confluent_kafka", reason="no Kafka: pip install 'homeostat[kafka]'")
    lines: list[str] = []
    require_kafka(lines.append)
    assert lines == [], "the jars are there"
    feed = KafkaFeed(tmp_path)
    try:
        feed.start(lines.append)
        servers = feed.options["servers"]
        assert lines == [f"starting a Kafka broker at {servers}"]
        topics = Topics(servers)
        assert sum(topics.ends(TOPIC).values()) == 0, "rows that nothing reads yet would be a backlog"
        (checkpoint_of(tmp_path) / "sources" / "0").mkdir(parents=True)
        wait_until(lambda: sum(topics.ends(TOPIC).values()) > 0, "the first rows are in the topic")
        feed.follow(((0.0, 100_000.0), (0.2, 0.0)), time.time())
        wait_until(lambda: sum(topics.ends(TOPIC).values()) >= 20_000, "the rows of a high load are in the topic")
        feed.check()
        rows = list(topics.rows(TOPIC))
        assert {row.partition for row in rows} == set(range(PARTITIONS))
        words = PROFILE.words(0, len(rows) + PARTITIONS)
        assert all(row.value == words[row.offset * PARTITIONS + row.partition].encode() for row in rows)
        ends = {number: max(row.offset for row in rows if row.partition == number) + 1 for number in range(PARTITIONS)}
        write_checkpoint(tmp_path, 0, ends, committed=True)
        assert feed.expected_counts() == Counter(row.value.decode() for row in rows if row.value is not None)
        topics.set(TOPIC, {"max.message.bytes": "1"})
        feed.follow(((0.0, 100_000.0),), time.time())
        wait_until(lambda: "topic words: rows were not written" in failure_of(feed), "refused rows are reported")
    finally:
        feed.stop()
    assert not (tmp_path / "broker" / "data").exists()
    assert feed.expected_counts() == counts_until(ends), "this needs no broker"
