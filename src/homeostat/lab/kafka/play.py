"""`make kafka`: a broker for experiments, which runs until you interrupt it."""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from pathlib import Path

from homeostat.core.errors import HomeostatError
from homeostat.lab.kafka.broker import KafkaBroker, broker_jars
from homeostat.lab.kafka.topics import Topics
from homeostat.spark.cluster import jars
from homeostat.spark.cluster.kafka_connector import connector_jars

TOPIC = "lines"
PARTITIONS = 4
HOW_TO = """\
Kafka runs at {servers} and has the topic {topic} with {partitions} partitions. Ctrl-C stops it and deletes its data.

Write into it, one row for each line that you type:

  {python} -m homeostat.lab.kafka.produce {servers} {topic}

Or a steady load of 1,000 rows per second:

  {python} -m homeostat.lab.kafka.produce {servers} {topic} --rate 1000

Read it with Spark:

  spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{servers}").option("subscribe", "{topic}").load()
"""


def main() -> int:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        jars.fetch((*broker_jars(), *connector_jars()), lambda line: print(line, flush=True))
        with tempfile.TemporaryDirectory(prefix="homeostat-kafka-") as place, KafkaBroker(Path(place)) as broker:
            Topics(broker.servers).create(TOPIC, PARTITIONS)
            print(
                HOW_TO.format(servers=broker.servers, topic=TOPIC, partitions=PARTITIONS, python=sys.executable),
                flush=True,
            )
            stopping.wait()
    except HomeostatError as error:
        print(f"homeostat: {error.line}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
