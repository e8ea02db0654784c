"""`homeostat fetch`: downloads jars that Spark or the demo needs and that pip does not install."""

from __future__ import annotations

from typing import Annotated

import typer

from homeostat.cli.output import JsonFlag, print_json, say
from homeostat.core.errors import ConfigError

KAFKA, BROKER = "kafka", "kafka-broker"


def fetch(
    what: Annotated[str, typer.Argument(metavar="kafka|kafka-broker", help="What to fetch.")],
    json: JsonFlag = False,
) -> None:
    """Download jars from Maven Central: Spark's Kafka connector, or a Kafka broker for demos and tests.

    Checks each file against its recorded SHA-256. Does not download files that are already there.
    """
    from homeostat.lab.kafka.broker import broker_jars
    from homeostat.spark.cluster import jars
    from homeostat.spark.cluster.kafka_connector import connector_jars, why_missing

    if what not in (KAFKA, BROKER):
        raise ConfigError(f"cannot fetch {what!r}", fix=f"write {KAFKA} or {BROKER}")
    required_jars = connector_jars() if what == KAFKA else broker_jars()
    if not required_jars:
        raise ConfigError(why_missing())
    paths = jars.fetch(required_jars, lambda line: say(f"homeostat: {line}"))
    if json:
        print_json({"files": [str(path) for path in paths]})
    else:
        print(f"{len(paths)} jars are in {jars.directory()}")
