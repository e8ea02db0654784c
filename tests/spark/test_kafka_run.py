"""`homeostat run` on a real broker: what happens to it costs no row, or is named with what to do.

A query copies a topic to another with `hs.kafka_sink`. The ledger reads the copy.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from homeostat.lab.kafka.broker import KafkaBroker
from homeostat.lab.kafka.ledger import read_ledger
from homeostat.lab.kafka.topics import Topics

pytestmark = pytest.mark.local_spark

WaitUntil = Callable[[Callable[[], bool], str], None]

APP = """
import homeostat as hs

@hs.pipeline(trigger="1 s", source_partitions=2)
def copy(ctx):
    reader = ctx.read_stream("kafka").option("kafka.bootstrap.servers", "{servers}").option("subscribe", "{source}")
    rows = reader.option("startingOffsets", "earliest").load()
    rows = rows.selectExpr("value", "concat(partition, '-', offset) AS place")
    return hs.kafka_sink(rows, "{servers}", "{target}", id="place")
"""


class Copying:
    """The broker, the command, and the rows that were written so far."""

    def __init__(self, home: Path, broker: KafkaBroker, name: str) -> None:
        self.home, self.broker = home, broker
        self.source, self.target = f"{name}-orders", f"{name}-copies"
        self.output = home / "output"
        self.written: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self, partitions: int = 2) -> None:
        for topic in (self.source, self.target):
            self.topics.create(topic, partitions)

    def run(self) -> None:
        app = self.home / "app.py"
        app.write_text(APP.format(servers=self.broker.servers, source=self.source, target=self.target))
        kept = ("--directory", str(self.home / "kept"), "--store", str(self.home / "log.sqlite"))
        command = [sys.executable, "-m", "homeostat.cli.main", "run", str(app), "--master", "local[2]", *kept]
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [*command, "--no-dashboard"], cwd=self.home, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    @property
    def topics(self) -> Topics:
        return Topics(self.broker.servers)

    def write(self, rows: int, partition: Callable[[int], int] = lambda number: -1) -> None:
        values = [f"row {number}" for number in range(len(self.written), len(self.written) + rows)]
        self.topics.write(self.source, values, partition=partition)
        self.written += values

    def has_line_with(self, *words: str) -> bool:
        return any(all(word in line for word in words) for line in self.output.read_text().splitlines())

    def is_copied(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.output.read_text()[-3000:]
        return read_ledger(self.topics, self.target).values.total() >= len(self.written)

    @property
    def checkpointed(self) -> dict[int, int]:
        """Where the last batch that is committed in the checkpoint ended."""
        (commits,) = (self.home / "kept").rglob("commits")
        last = max((int(file.name) for file in commits.iterdir() if file.name.isdigit()), default=-1)
        if last < 0:
            return {}
        *_, line = (commits.parent / "offsets" / str(last)).read_text().splitlines()
        return {int(partition): offset for partition, offset in json.loads(line)[self.source].items()}

    def differences(self) -> list[str]:
        return read_ledger(self.topics, self.target).differences(self.written)

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(60.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


@pytest.fixture
def copying(stopped_kafka: KafkaBroker, topic_name: str, tmp_path: Path) -> Iterator[Copying]:
    copying = Copying(tmp_path, stopped_kafka, topic_name)
    yield copying
    copying.close()


def test_a_broker_that_stops_and_a_topic_that_grows_cost_no_row(copying: Copying, wait_until: WaitUntil) -> None:
    copying.prepare()
    copying.write(500)
    (copying.home / "homeostat.toml").write_text('[kafka]\npublish_group = "shown-{query}"\n')
    copying.run()
    wait_until(copying.is_copied, "the first rows are copied")
    wait_until(lambda: (copying.home / "kept" / "capabilities.json").exists(), "it is managed")
    copying.broker.stop()
    wait_until(
        lambda: copying.has_line_with("source-unreachable", "no answer for", "check that the brokers run"), "an alert"
    )
    copying.broker.start()
    copying.write(500)
    wait_until(copying.is_copied, "the rows after the outage are copied")
    copying.topics.add_partitions(copying.source, 4)
    copying.write(300, partition=lambda number: 3)
    wait_until(copying.is_copied, "the rows of the new partition are copied")
    assert copying.differences() == []

    def is_published() -> bool:
        """The group `shown-copy` has the offsets of the checkpoint, at the end of every partition."""
        committed = copying.topics.committed("shown-copy", copying.source)
        return committed == copying.checkpointed == copying.topics.ends(copying.source)

    wait_until(is_published, "the offsets of the checkpoint are those of the group")


@pytest.mark.soak
def test_a_broker_that_is_down_at_the_start_is_named_and_waited_for(copying: Copying, wait_until: WaitUntil) -> None:
    copying.prepare()
    copying.write(100)
    copying.broker.stop()
    copying.run()
    wait_until(lambda: copying.has_line_with("has not answered for"), "it says what it waits for")
    copying.broker.start()
    wait_until(copying.is_copied, "the rows are copied once the broker is up")
    assert copying.differences() == []


@pytest.mark.soak
def test_more_load_and_an_uneven_topic_cost_no_row(copying: Copying, wait_until: WaitUntil) -> None:
    copying.prepare(partitions=4)
    copying.write(2_000)
    copying.run()
    wait_until(copying.is_copied, "the first rows are copied")
    copying.write(40_000)
    copying.write(40_000, partition=lambda number: 0 if number % 5 < 3 else 1 + number % 3)
    wait_until(copying.is_copied, "all rows are copied")
    assert copying.differences() == []


@pytest.mark.soak
def test_a_topic_that_is_deleted_is_named_with_what_to_do(copying: Copying, wait_until: WaitUntil) -> None:
    copying.prepare()
    copying.write(100)
    copying.run()
    wait_until(copying.is_copied, "the rows are copied")
    copying.topics.delete(copying.source)
    wait_until(lambda: copying.has_line_with("source-gone", "orders does not exist", "create the topic"), "an alert")
    assert copying.differences() == []


@pytest.mark.soak
def test_rows_that_expire_before_they_are_read_are_named(copying: Copying, wait_until: WaitUntil) -> None:
    copying.prepare(partitions=1)
    copying.write(100)
    copying.run()
    wait_until(copying.is_copied, "the first rows are copied")
    copied = list(copying.written)

    def expires_unread() -> bool:
        """A batch may be faster than the deletion, so it is tried again."""
        copying.write(2_000)
        end = copying.topics.ends(copying.source)[0]
        copying.topics.delete_rows(copying.source, 0, end)
        return copying.has_line_with("rows-expired", "retention.ms")

    wait_until(expires_unread, "an alert")
    ledger = read_ledger(copying.topics, copying.target)
    assert (ledger.unnamed, ledger.reused) == (0, 0)
    assert all(ledger.values[row.encode()] == 1 for row in copied)
