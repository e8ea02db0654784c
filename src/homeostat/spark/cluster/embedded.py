"""A private Spark cluster: a standalone master and workers as child processes on loopback addresses."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import secrets
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
from homeostat.spark.cluster.leftovers import LOCAL, remove_leftovers
from homeostat.spark.cluster.process_keeper import Keeper

T = TypeVar("T")

MASTER = "master"
MASTER_HOST = "127.0.0.1"
# A choice: a slow or busy machine must not fail to start, and a cluster that never starts must fail in the end. A
# process that dies is reported at once, without waiting for this.
START_LIMIT_S = 120.0
LOOK_AGAIN_S = 0.1
WORKER_PAUSE_S = 5.0  # a choice: a worker that dies again at once costs little CPU, and a killed worker is back soon
ANSWER_LIMIT_S = 15.0  # the first request to a Spark UI can take seconds
TAIL_LINES = 3
INSTALL = "pip install 'homeostat[spark]'"
# The daemons only pass messages. Without compiler and collector threads they do not compete with the executors.
LIGHT = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
# The output size of SHA-256: a longer key of an HMAC would not be safer.
SECRET_BYTES = 32
CONF_DIR = "SPARK_CONF_DIR"
# The pages of the master have no sign-in, so they must not end or drain anything.
ONLY_TO_LOOK = {"spark.ui.killEnabled": "false", "spark.master.ui.decommission.allow.mode": "DENY"}
# A worker lets the output of its executors roll over, and deletes the files of applications that ended an hour ago.
BOUNDED_FILES = " ".join(
    (
        "-Dspark.executor.logs.rolling.strategy=size",
        "-Dspark.executor.logs.rolling.maxSize=4000000",
        "-Dspark.executor.logs.rolling.maxRetainedFiles=2",
        "-Dspark.worker.cleanup.enabled=true",
        "-Dspark.worker.cleanup.interval=600",
        "-Dspark.worker.cleanup.appDataTtl=3600",
    )
)
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
    """The cluster did not start, or one of its processes died."""


class EmbeddedCluster:
    """One master and some workers. Each worker has its own address, so that Spark sees distinct hosts.

    A worker may declare more cores and memory than the machine has. All processes end with `stop`, at the end of the
    `with` block, and with the process that started them, even if that is killed.

    Only processes that have the secret of the cluster can use it. While it runs, SPARK_CONF_DIR of this process names a
    directory that only this user can read, with the secret in it. Sessions of this process and of its children find it
    there.
    """

    def __init__(self, directory: Path, *, workers: int = 4, cores: int = 4, memory_mb: int = 8192) -> None:
        self.directory = directory.resolve()
        self.cores = cores
        self.memory_mb = memory_mb
        self.worker_hosts = tuple(f"127.0.0.{number + 2}" for number in range(workers))
        self.master_url = ""
        self.ui_url = ""
        self._keeper: Keeper | None = None
        self._conf_dir_before: str | None = None
        self._daemon_environment: dict[str, str] = {}
        self._worker_started_s: dict[str, float] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything and wait until every worker is registered."""
        self._daemon_environment = self._new_environment()
        self._conf_dir_before = os.environ.get(CONF_DIR)
        os.environ[CONF_DIR] = str(self.client_conf)
        self._keeper = Keeper()
        try:
            self._start_master()
            for host in self.worker_hosts:
                self._start_worker(host)
            self._until(self._all_registered, "the workers did not register")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all processes and wait for that. Safe to repeat."""
        if self._keeper:
            self._keeper.close()
            self._keeper = None
            if os.environ.get(CONF_DIR) == str(self.client_conf):
                os.environ.pop(CONF_DIR)
                if self._conf_dir_before is not None:
                    os.environ[CONF_DIR] = self._conf_dir_before

    @property
    def client_conf(self) -> Path:
        """The directory with the settings that a session on this cluster needs."""
        return self.directory / "client"

    def mend(self) -> list[str]:
        """Restart workers that have died, and return which. Raises ClusterError if the master or its keeper has
        ended.
        """
        assert self._keeper is not None
        code = self._keeper.code(MASTER)
        if code is not None:
            raise ClusterError(f"the Spark master ended with code {code}", where="embedded cluster")
        now_s = time.monotonic()
        dead = [host for host in self.worker_hosts if self._keeper.code(host) is not None]
        overdue = [host for host in dead if now_s - self._worker_started_s[host] > WORKER_PAUSE_S]
        for host in overdue:
            self._start_worker(host)
        return overdue

    def log(self, name: str) -> Path:
        """The log of the master, or of the worker on a host."""
        return self.directory / "logs" / f"{name}.log"

    def state(self) -> Mapping[str, Any]:
        """The state of the master, its workers and applications, as it reports them."""
        with urllib.request.urlopen(f"{self.ui_url}/json/", timeout=ANSWER_LIMIT_S) as answer:
            state: Mapping[str, Any] = json.load(answer)
        return state

    def _new_environment(self) -> dict[str, str]:
        """The environment of the cluster's processes: without the user's own Spark settings, which are for another
        cluster, and with a new secret."""
        for host in (MASTER_HOST, *self.worker_hosts):
            _require_address(host)
        remove_leftovers(self.directory)
        for part in ("logs", "work", LOCAL):
            (self.directory / part).mkdir(parents=True, exist_ok=True)
        conf = self.directory / "conf"
        # Spark reads a secret from a file of settings, a command line or the environment. Only a file can be private.
        secret = {"spark.authenticate": "true", "spark.authenticate.secret": secrets.token_hex(SECRET_BYTES)}
        _write_settings(conf, {**secret, **ONLY_TO_LOOK})
        _write_settings(self.client_conf, secret)
        (conf / "log4j2.properties").write_text(LOGGING)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        return environment | {
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(spark_home()),
            CONF_DIR: str(conf),
            "SPARK_LOCAL_DIRS": str(self.directory / LOCAL),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{LIGHT} -Dspark.master.rest.enabled=false",
            "SPARK_LAUNCHER_OPTS": LIGHT,
            "SPARK_WORKER_OPTS": BOUNDED_FILES,
        }

    def _start_master(self) -> None:
        # With port 0 the system chooses a free port, and the log says which.
        self._start(
            MASTER,
            "org.apache.spark.deploy.master.Master",
            ["--host", MASTER_HOST, "--port", "0", "--webui-port", "0"],
            {"SPARK_LOCAL_IP": MASTER_HOST, "SPARK_PUBLIC_DNS": MASTER_HOST},
        )
        self.master_url = self._until(lambda: self._find_in_log(r"master at (spark://\S+)"), "the master did not start")
        self.ui_url = self._until(
            lambda: self._find_in_log(r"MasterWebUI.* (http://\S+)"), "the master's web UI did not start"
        )

    def _start_worker(self, host: str) -> None:
        self._worker_started_s[host] = time.monotonic()
        memory = f"{self.memory_mb}m"
        arguments = ["--host", host, "--port", "0", "--webui-port", "0", "--cores", str(self.cores), "--memory", memory]
        self._start(
            host,
            "org.apache.spark.deploy.worker.Worker",
            [*arguments, "--work-dir", str(self.directory / "work" / host), self.master_url],
            {"SPARK_LOCAL_IP": host},
        )

    def _start(self, name: str, spark_class: str, arguments: list[str], own_settings: Mapping[str, str]) -> None:
        assert self._keeper is not None
        log = self.log(name)
        log.unlink(missing_ok=True)
        command = [str(spark_home() / "bin" / "spark-class"), spark_class, *arguments]
        environment = {**self._daemon_environment, **own_settings}
        try:
            self._keeper.start(name, command, environment=environment, directory=self.directory, log=log)
        except OSError as error:
            raise ClusterError(f"{name} did not start: {error}", where="embedded cluster") from error

    def _find_in_log(self, pattern: str) -> str:
        match = re.search(pattern, _text(self.log(MASTER)))
        return match[1] if match else ""

    def _all_registered(self) -> bool:
        alive = {worker["host"] for worker in self.state()["workers"] if worker["state"] == "ALIVE"}
        return alive >= set(self.worker_hosts)

    def _until(self, condition: Callable[[], T], otherwise: str) -> T:
        """Wait until a condition is truthy. Raises if a process dies or the time is up."""
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
                raise ClusterError(
                    f"{name} exited with code {code}; {self._last_words(name)}", where="embedded cluster"
                )

    def _last_words(self, name: str) -> str:
        log = self.log(name)
        tail = deque((line.strip() for line in _text(log).splitlines() if line.strip()), maxlen=TAIL_LINES)
        return f"last lines of {log}: {' / '.join(tail) or 'none'}"


def spark_home() -> Path:
    """The Spark of the installed PySpark: inside its package, or the distribution that contains it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigError("PySpark is not installed", fix=INSTALL)
    package = Path(spec.origin).parent
    for home in (package, package.parent.parent):
        if (home / "jars").is_dir():
            return home
    raise ConfigError("the installed PySpark is a client without Spark", where=str(package), fix=INSTALL)


def _write_settings(directory: Path, settings: Mapping[str, str]) -> None:
    """Settings for Spark, in a directory and a file that only this user can read."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    file = directory / "spark-defaults.conf"
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.writelines(f"{name} {value}\n" for name, value in settings.items())


def _require_address(host: str) -> None:
    """Linux has all of 127.0.0.0/8. On other systems you must add addresses other than 127.0.0.1 yourself."""
    try:
        with socket.create_server((host, 0)):
            pass
    except OSError as error:
        raise ConfigError(
            f"cannot use the address {host}: {error.strerror}",
            where="embedded cluster",
            fix="use an existing cluster with --master",
        ) from error


def _text(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
