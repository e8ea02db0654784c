"""The rows of the demonstration from a Kafka broker of its own. A thread writes them at the rate of the load."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.lab.demonstration_feed import PARTITIONS, PROFILE, checkpoint_of, factors, ledger_of
from homeostat.lab.kafka.broker import KafkaBroker, broker_jars
from homeostat.lab.kafka.topics import INSTALL, LIMIT_S, Topics, Writer
from homeostat.lab.ledger import last_counted_batch, source_offsets
from homeostat.lab.load_profile import Load
from homeostat.spark.cluster import jars
from homeostat.spark.cluster.kafka_connector import connector_jars, why_missing

TOPIC = "words"
# A choice: short compared with a trigger, long compared with the work of one step.
STEP_S = 0.1
# If the broker does not accept a row within this time, the demonstration ends. Log lines of the client would disturb
# the display.
_SETTINGS = {"message.timeout.ms": str(round(LIMIT_S * 1000)), "log_level": "0"}


class KafkaFeed:
    """A broker with the topic `words`. Row n is in partition n % 6, so that offsets show which rows have been read."""

    def __init__(self, directory: Path) -> None:
        self._broker = KafkaBroker(directory / "broker")
        self._checkpoint, self._ledger = checkpoint_of(directory), ledger_of(directory)
        self._thread: Thread | None = None
        self._stopping = Event()
        self._error: HomeostatError | None = None
        self._load: Load = ()
        self._started = False
        self._started_s = 0.0

    @property
    def options(self) -> Mapping[str, Any]:
        return {"servers": self._broker.servers, "topic": TOPIC}

    @property
    def _is_read(self) -> bool:
        """Whether the query has looked for its first batch: Spark then notes where its source begins."""
        return (self._checkpoint / "sources").exists()

    def start(self, say: Callable[[str], None]) -> None:
        say(f"starting a Kafka broker at {self._broker.servers}")
        self._started = True
        self._broker.start()
        Topics(self._broker.servers).create(TOPIC, PARTITIONS)
        self._thread = Thread(target=self._write, name="demonstration-rows", daemon=True)
        self._thread.start()

    def follow(self, load: Load, began_s: float) -> None:
        self._load = factors(load, began_s - self._started_s)

    def check(self) -> None:
        if self._error is not None:
            raise self._error

    def expected_counts(self) -> dict[str, int]:
        batch_id = last_counted_batch(self._ledger, self._checkpoint)
        if batch_id is None:
            return {}
        (offset,) = source_offsets(self._checkpoint, batch_id)
        return counts_until({int(partition): end for partition, end in offset[TOPIC].items()})

    def stop(self) -> None:
        """The rows are deleted, since nothing can read them without the broker. Its log stays."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._broker.stop()
        if self._started:  # otherwise the data may belong to another demonstration that is running
            shutil.rmtree(self._broker.directory / "data", ignore_errors=True)

    def _write(self) -> None:
        try:
            writer = Writer(self._broker.servers, TOPIC, _SETTINGS)
            # Rows written while Spark starts would become a backlog: on a busy machine the start takes minutes.
            while not self._is_read and not self._stopping.wait(STEP_S):
                pass
            row, self._started_s = 0, time.time()
            while not self._stopping.wait(STEP_S):
                row = self._write_rows(writer, row)
                writer.check()
        except HomeostatError as error:
            self._error = error.with_traceback(None)  # a traceback would keep the writer alive

    def _write_rows(self, writer: Writer, first: int) -> int:
        """Write the rows from `first` that have arrived by now, and return the number of the row after them."""
        end = max(first, PROFILE.rows_until(time.time() - self._started_s, self._load))
        for row, word in enumerate(PROFILE.words(first, end).tolist(), first):
            writer.put(word, partition=row % PARTITIONS)
        return end


def counts_until(ends: Mapping[int, int]) -> dict[str, int]:
    """How often each word occurs in the topic before these offsets, by partition."""
    counts: Counter[str] = Counter()
    for partition, end in ends.items():
        words = PROFILE.words(0, end * PARTITIONS)[partition::PARTITIONS]
        counts.update(words.tolist())
    return dict(counts)


def require_kafka(say: Callable[[str], None]) -> None:
    """Fetch the broker and Spark's connector if they are not there. Raise ConfigError if that is not possible."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError as error:
        raise ConfigError("confluent-kafka is not installed", where="--kafka", fix=INSTALL) from error
    connector = connector_jars()
    if not connector and (reason := why_missing()):
        raise ConfigError(reason, where="--kafka")
    jars.fetch((*broker_jars(), *connector), say)
