"""A Kafka topic that always has more rows than a job will read soon, without a writer that runs beside the job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from homeostat.lab.kafka.broker import KafkaBroker
from homeostat.lab.kafka.topics import Topics
from homeostat.lab.load_profile import Profile

NAME = "words"
# A choice: a hundred batches of the largest job, and written within seconds.
ROWS_AHEAD = 300_000


@dataclass
class EndlessTopic:
    """Its rows are the words of the profile, dealt to the partitions in turn."""

    servers: str
    partitions: int
    profile: Profile
    rows: int = 0

    def fill(self, read_rows: int = 0) -> None:
        """Write rows until the topic has `ROWS_AHEAD` more than have been read."""
        end = read_rows + ROWS_AHEAD
        if end > self.rows:
            words = self.profile.words(self.rows, end).tolist()
            Topics(self.servers).write(NAME, words, partition=lambda number: number % self.partitions)
            self.rows = end


@contextmanager
def endless_topic(directory: Path, partitions: int, profile: Profile) -> Iterator[EndlessTopic]:
    """The topic on a broker of its own, filled."""
    with KafkaBroker(directory) as broker:
        Topics(broker.servers).create(NAME, partitions)
        topic = EndlessTopic(broker.servers, partitions, profile)
        topic.fill()
        yield topic
