"""A Kafka broker of one process on a loopback address, from jars that `homeostat fetch kafka-broker` downloads."""

from __future__ import annotations

import base64
import os
import re
import socket
import subprocess
import time
import uuid
from collections import deque
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Self

from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.spark.cluster import jars
from homeostat.spark.cluster.jars import Jar
from homeostat.spark.cluster.java import find_java
from homeostat.spark.cluster.process_keeper import Keeper

HOST = "127.0.0.1"
# The broker starts in seconds, or many times as long on a busy machine. A choice.
START_LIMIT_S = 180.0
STOP_LIMIT_S = 60.0
LOOK_AGAIN_S = 0.1
TAIL_LINES = 3
FETCH = "homeostat fetch kafka-broker"
_NAME = "kafka"
# A broker for tests moves megabytes: a small heap and quick compilation leave the machine to Spark.
_JVM = ("-Xmx320m", "-Xms96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
_STARTED = re.compile(r"\[KafkaRaftServer nodeId=1\] Kafka Server started")
# One process is broker and controller. A topic is deleted, and old segments are dropped, within a second or two.
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=1000
log.initial.task.delay.ms=500
file.delete.delay.ms=100
num.network.threads=2
num.io.threads=4
background.threads=2
"""
_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.log.ref = log
logger.started.name = kafka.server
logger.started.level = info
logger.raft.name = org.apache.kafka.server
logger.raft.level = warn
appender.log.type = Console
appender.log.name = log
appender.log.target = SYSTEM_ERR
appender.log.layout.type = PatternLayout
appender.log.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


class BrokerError(HomeostatError):
    """The broker did not start, or it died."""


class KafkaBroker:
    """Keeps its topics in `directory`. After `stop`, `start` begins again with the same topics at the same address.

    The process ends with the one that started it, even if that is killed.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self._ports = (free_port(), free_port())
        self._keeper: Keeper | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def servers(self) -> str:
        """The value of `kafka.bootstrap.servers`."""
        return f"{HOST}:{self._ports[0]}"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    def start(self) -> None:
        """Start the broker, and return when it accepts requests."""
        if self._keeper is not None:
            return
        environment = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}
        self._configure(environment)
        self.log.unlink(missing_ok=True)
        self._keeper = Keeper()
        try:
            self._keeper.start(
                _NAME,
                self._java("kafka.Kafka", str(self._properties)),
                environment=environment,
                directory=self.directory,
                log=self.log,
            )
            self._wait_until(lambda: bool(_STARTED.search(_text(self.log))))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process and wait until it has ended. Safe to repeat."""
        if self._keeper is not None:
            self._keeper.end(_NAME)
            self._keeper.wait(_NAME, STOP_LIMIT_S)
            self._keeper.close()
            self._keeper = None

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    def _configure(self, environment: dict[str, str]) -> None:
        data = self.directory / "data"
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "log4j2.properties").write_text(_LOGGING)
        port, controller = self._ports
        self._properties.write_text(_PROPERTIES.format(host=HOST, port=port, controller=controller, data=data))
        if not data.exists():
            cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
            command = self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._properties))
            result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if result.returncode:
                raise BrokerError(f"Kafka cannot write its data: {(result.stdout + result.stderr).strip()[-300:]}")

    def _java(self, main: str, *arguments: str) -> list[str]:
        broker_files = broker_jars()
        if jars.missing(broker_files):
            raise ConfigError("the Kafka broker is not installed", fix=FETCH)
        logging = f"-Dlog4j2.configurationFile={(self.directory / 'log4j2.properties').as_uri()}"
        classes = os.pathsep.join(str(jar.path) for jar in broker_files)
        return [str(find_java().command), *_JVM, logging, "-cp", classes, main, *arguments]

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        assert self._keeper is not None
        deadline = time.monotonic() + START_LIMIT_S
        while not condition():
            code = self._keeper.code(_NAME)
            if code is not None or time.monotonic() > deadline:
                ended = f"ended with code {code}" if code is not None else f"did not start within {START_LIMIT_S:.0f} s"
                tail = deque((line.strip() for line in _text(self.log).splitlines() if line.strip()), maxlen=TAIL_LINES)
                raise BrokerError(f"Kafka {ended}; last lines of {self.log}: {' / '.join(tail) or 'none'}")
            time.sleep(LOOK_AGAIN_S)


def broker_jars() -> tuple[Jar, ...]:
    return jars.read_list((files("homeostat.lab.kafka") / "broker.jars").read_text())


def free_port() -> int:
    with socket.create_server((HOST, 0)) as server:
        return int(server.getsockname()[1])


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
