"""A Spark cluster of its own: a standalone master and workers as child processes on loopback."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.spark.cluster.java import find_java
from homeostat.spark.cluster.process_keeper import Keeper

T = TypeVar("T")

MASTER = "master"
MASTER_HOST = "127.0.0.1"
START_LIMIT_S = 120.0
LOOK_AGAIN_S = 0.1
ANSWER_LIMIT_S = 15.0  # the first request to a Spark UI can take seconds
TAIL_LINES = 3
INSTALL = "pip install 'homeostat[spark]'"
# The daemons only pass messages: a small heap, and no compiler or collector threads to compete with the executors.
LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
LOGGING = """\
rootLogger.level = info
logger.jetty.name = org.sparkproject.jetty
logger.jetty.level = warn
rootLogger.appenderRef.log.ref = log
appender.log.type = Console
appender.log.name = log
appender.log.target = SYSTEM_ERR
appender.log.layout.type = PatternLayout
appender.log.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


class ClusterError(HomeostatError):
    """The cluster does not start, or a part of it has died."""


class EmbeddedCluster:
    """One master and some workers, each worker on an address of its own so that hosts are distinct to Spark.

    Cores and memory are what a worker declares, not what the machine has. Everything ends with `stop`, with the
    context, and with the process that started it, even if that is killed.
    """

    def __init__(self, directory: Path, *, workers: int = 4, cores: int = 4, memory_mb: int = 8192) -> None:
        self.directory = directory.resolve()
        self.cores = cores
        self.memory_mb = memory_mb
        self.worker_hosts = tuple(f"127.0.0.{number + 2}" for number in range(workers))
        self.master_url = ""
        self.ui_url = ""
        self._keeper: Keeper | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and wait until every worker is registered."""
        environment = self._environment()
        self._keeper = Keeper()
        try:
            self._start_master(environment)
            for host in self.worker_hosts:
                self._start_worker(host, environment)
            self._until(self._all_registered, "its workers did not register")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything and wait until it is gone. Safe to repeat."""
        if self._keeper:
            self._keeper.close()
            self._keeper = None

    def log(self, name: str) -> Path:
        """The log of the master, or of the worker on a host."""
        return self.directory / "logs" / f"{name}.log"

    def state(self) -> Mapping[str, Any]:
        """What the master says about itself, its workers and applications."""
        with urllib.request.urlopen(f"{self.ui_url}/json/", timeout=ANSWER_LIMIT_S) as answer:
            state: Mapping[str, Any] = json.load(answer)
        return state

    def _environment(self) -> dict[str, str]:
        """The user's own Spark settings are about another cluster, so none of them reach this one."""
        for host in (MASTER_HOST, *self.worker_hosts):
            _require_address(host)
        for part in ("logs", "work", "local", "conf"):
            (self.directory / part).mkdir(parents=True, exist_ok=True)
        (self.directory / "conf" / "log4j2.properties").write_text(LOGGING)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        return kept | {
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONF_DIR": str(self.directory / "conf"),
            "SPARK_LOCAL_DIRS": str(self.directory / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{LIGHT} -Dspark.master.rest.enabled=false",
            "SPARK_LAUNCHER_OPTS": LIGHT,
        }

    def _start_master(self, environment: Mapping[str, str]) -> None:
        # Port 0 lets the system choose, so that no other process can take the port in between; the log tells which.
        self._start(
            MASTER,
            "org.apache.spark.deploy.master.Master",
            ["--host", MASTER_HOST, "--port", "0", "--webui-port", "0"],
            {**environment, "SPARK_LOCAL_IP": MASTER_HOST, "SPARK_PUBLIC_DNS": MASTER_HOST},
        )
        self.master_url = self._until(lambda: self._found_in_log(r"master at (spark://\S+)"), "it did not start")
        self.ui_url = self._until(lambda: self._found_in_log(r"MasterWebUI.* (http://\S+)"), "its page did not start")

    def _start_worker(self, host: str, environment: Mapping[str, str]) -> None:
        memory = f"{self.memory_mb}m"
        arguments = ["--host", host, "--port", "0", "--webui-port", "0", "--cores", str(self.cores), "--memory", memory]
        self._start(
            host,
            "org.apache.spark.deploy.worker.Worker",
            [*arguments, "--work-dir", str(self.directory / "work" / host), self.master_url],
            {**environment, "SPARK_LOCAL_IP": host},
        )

    def _start(self, name: str, spark_class: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        assert self._keeper is not None
        log = self.log(name)
        log.unlink(missing_ok=True)
        command = [str(spark_home() / "bin" / "spark-class"), spark_class, *arguments]
        self._keeper.start(name, command, environment=environment, directory=self.directory, log=log)

    def _found_in_log(self, pattern: str) -> str:
        found = re.search(pattern, _text(self.log(MASTER)))
        return found[1] if found else ""

    def _all_registered(self) -> bool:
        alive = {worker["host"] for worker in self.state()["workers"] if worker["state"] == "ALIVE"}
        return alive >= set(self.worker_hosts)

    def _until(self, condition: Callable[[], T], otherwise: str) -> T:
        """Wait for a condition to be truthy; a process that dies or the time limit ends the waiting."""
        deadline = time.monotonic() + START_LIMIT_S
        while not (value := condition()):
            self._require_alive()
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{otherwise} within {START_LIMIT_S:.0f} s; {self._last_words(MASTER)}", where="embedded cluster"
                )
            time.sleep(LOOK_AGAIN_S)
        return value

    def _require_alive(self) -> None:
        assert self._keeper is not None
        for name in (MASTER, *self.worker_hosts):
            code = self._keeper.code(name)
            if code is not None:
                raise ClusterError(f"{name} ended with code {code}; {self._last_words(name)}", where="embedded cluster")

    def _last_words(self, name: str) -> str:
        log = self.log(name)
        tail = deque((line.strip() for line in _text(log).splitlines() if line.strip()), maxlen=TAIL_LINES)
        return f"{log} ends with: {' / '.join(tail) or 'nothing'}"


def spark_home() -> Path:
    """The Spark that belongs to the installed PySpark: inside its package, or the distribution it is a part of."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ConfigError("PySpark is not installed", fix=INSTALL)
    package = Path(found.origin).parent
    for home in (package, package.parent.parent):
        if (home / "jars").is_dir():
            return home
    raise ConfigError("the installed PySpark is a client without Spark itself", where=str(package), fix=INSTALL)


def _require_address(host: str) -> None:
    """Linux has all of 127.0.0.0/8; elsewhere addresses beyond the first must be added by hand."""
    try:
        with socket.create_server((host, 0)):
            pass
    except OSError as error:
        raise ConfigError(
            f"the address {host} cannot be used here: {error.strerror}",
            where="embedded cluster",
            fix="name a cluster with --master",
        ) from error


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
