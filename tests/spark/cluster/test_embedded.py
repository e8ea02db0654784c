"""The embedded cluster and the session on it: distinct hosts, loopback only, nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psutil
import pytest

from homeostat.core.errors import ConfigError
from homeostat.lab.faults import executor_processes
from homeostat.spark.cluster.embedded import ClusterError, EmbeddedCluster
from homeostat.spark.cluster.session import spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WaitUntil = Callable[[Callable[[], bool], str], None]

# A driver of its own, with a task that keeps a Python worker busy until somebody ends it.
APPLICATION = """
import sys, time
from pathlib import Path
from homeostat.spark.cluster.embedded import EmbeddedCluster
from homeostat.spark.cluster.session import build_session, spark_conf
directory = Path(sys.argv[1])
with EmbeddedCluster(directory / "cluster", workers=1) as cluster:
    conf = spark_conf(master=cluster.master_url, app_name="doomed", executors=1, directory=directory / "session")
    spark = build_session(conf)
    started = directory / "started"
    def linger(number):
        started.touch()
        time.sleep(600)
    print(spark.sparkContext.applicationId, flush=True)
    spark.sparkContext.parallelize([1], 1).foreach(linger)
"""

# Another user of the machine: the same settings without the secret.
STRANGER = """
import os, sys
from pathlib import Path
os.environ.pop("SPARK_CONF_DIR", None)
from homeostat.spark.cluster.session import build_session, spark_conf
conf = spark_conf(master=sys.argv[1], app_name="stranger", executors=1, directory=Path(sys.argv[2]))
conf["spark.authenticate"] = sys.argv[3]
if sys.argv[3] == "true":
    conf["spark.authenticate.secret"] = "a guess"
try:
    build_session(conf)
except Exception as error:
    print("refused")
else:
    print("registered")
"""

IN_ONE_PROCESS = """
import sys
from pathlib import Path
from homeostat.spark.cluster.session import build_session, spark_conf
spark = build_session(spark_conf(master="local[*]", app_name="local", executors=2, directory=Path(sys.argv[1])))
print(spark.range(10).count(), spark.sparkContext.parallelize([1, 2], 2).map(lambda n: n * 10).sum())
spark.stop()
"""


@pytest.fixture(scope="module", autouse=True)
def strangers(
    cluster: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[subprocess.Popen[str]]]:
    """One without a secret and one with a wrong one. They try for a minute, during the other tests of this file."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", STRANGER, cluster.master_url, str(tmp_path_factory.mktemp("stranger")), guesses],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for guesses in ("false", "true")
    ]
    yield processes
    for process in processes:
        with process:  # closes its pipes and waits for its end
            process.kill()


def test_every_worker_has_a_host_of_its_own(cluster: EmbeddedCluster) -> None:
    workers = cluster.state()["workers"]
    assert sorted(worker["host"] for worker in workers) == ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    assert {worker["cores"] for worker in workers} == {4}
    assert cluster.master_url.startswith("spark://127.0.0.1:")
    assert all(cluster.log(name).exists() for name in ("master", *cluster.worker_hosts))


def test_executors_run_on_the_workers_hosts_in_this_python(spark: SparkSession, cluster: EmbeddedCluster) -> None:
    def whereabouts(_: int) -> tuple[str, str]:
        return os.environ["SPARK_LOCAL_IP"], sys.executable

    places = set(spark.sparkContext.parallelize(range(8), 8).map(whereabouts).collect())
    assert {host for host, _ in places} <= set(cluster.worker_hosts)
    assert {python for _, python in places} == {sys.executable}


def _files_with(secret: str, directory: Path) -> list[Path]:
    """The files below `directory` that hold `secret`; the cluster adds and removes files meanwhile."""
    files = []
    for parent, _, names in os.walk(directory):
        for path in (Path(parent, name) for name in names):
            with contextlib.suppress(FileNotFoundError):
                if path.is_file() and secret.encode() in path.read_bytes():
                    files.append(path)
    return files


def test_the_secret_is_in_private_files_only(spark: SparkSession, cluster: EmbeddedCluster) -> None:
    secret = spark.sparkContext.getConf().get("spark.authenticate.secret")
    assert secret is not None
    files = _files_with(secret, cluster.directory)
    assert sorted(path.relative_to(cluster.directory).as_posix() for path in files) == [
        "client/spark-defaults.conf",
        "conf/spark-defaults.conf",
    ]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.parent.stat().st_mode & 0o777 for path in files} == {0o700}
    processes = [process.as_dict(["cmdline"]) for process in psutil.Process().children(recursive=True)]
    commands = [" ".join(process["cmdline"] or []) for process in processes]
    assert any("deploy.master.Master" in command for command in commands)
    assert not [command for command in commands if secret in command]


def test_all_listens_on_loopback_only(spark: SparkSession, cluster: EmbeddedCluster) -> None:
    assert urlsplit(spark.sparkContext.uiWebUrl or "").hostname == "127.0.0.1"
    processes = [process for process in psutil.Process().children(recursive=True) if process.name() == "java"]
    assert len(processes) >= 1 + 3 + 1  # master, workers, driver
    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for process in processes
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert {address.split(".")[0] for address in listening} == {"127"}


def test_the_state_store_is_rocksdb_and_dynamic_allocation_is_on(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert "RocksDB" in (conf.get("spark.sql.streaming.stateStore.providerClass") or "")
    assert spark.sparkContext._jsc.sc().executorAllocationManager().isDefined()


def test_nothing_is_left_when_the_application_is_killed(tmp_path: Path, wait_until: WaitUntil) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", APPLICATION, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as application:
        assert application.stdout is not None
        name = application.stdout.readline().strip()
        wait_until((tmp_path / "started").exists, "the Python worker has begun")
        left = psutil.Process(application.pid).children(recursive=True)
        executors = executor_processes(name)
        assert {pid for pids in executors.values() for pid in pids} <= {process.pid for process in left}
        assert len(executors["0"]) >= 3  # the executor, its Python daemon, a Python worker
        os.kill(application.pid, signal.SIGKILL)
    wait_until(lambda: not any(process.is_running() for process in left), f"{left} are gone")


def test_one_process_can_be_driver_and_executor_whatever_other_spark_there_is(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_ONE_PROCESS, tmp_path],
        env={**os.environ, "SPARK_HOME": str(tmp_path), "PYSPARK_PYTHON": "no-such-python"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.split() == ["10", "30"]
    assert (tmp_path / "logs" / "driver.log").exists()


def test_a_worker_that_dies_is_reported_in_one_line(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, workers=1, memory_mb=0)
    with pytest.raises(ClusterError) as caught:
        cluster.start()
    assert caught.value.line.startswith("embedded cluster: 127.0.0.2 exited with code 1; ")
    assert str(cluster.log("127.0.0.2")) in caught.value.line
    assert "\n" not in caught.value.line
    assert not [
        process for process in psutil.process_iter(["cmdline"]) if str(tmp_path) in (process.info["cmdline"] or [])
    ]


def test_a_killed_worker_is_started_again_and_a_killed_master_is_reported(
    tmp_path: Path, wait_until: WaitUntil
) -> None:
    with EmbeddedCluster(tmp_path, workers=1) as cluster:
        assert cluster.mend() == []
        kill_below(tmp_path, "deploy.worker.Worker")
        wait_until(lambda: cluster.mend() == ["127.0.0.2"], "the worker is started again")
        wait_until(lambda: living_workers(cluster) == 1, "it is registered")
        kill_below(tmp_path, "deploy.master.Master")

        wait_until(lambda: complaint(cluster) == "the Spark master ended with code -9", "the master is missed")


def complaint(cluster: EmbeddedCluster) -> str:
    try:
        cluster.mend()
    except ClusterError as error:
        return error.what
    return ""


def kill_below(directory: Path, sign: str) -> None:
    for process in psutil.process_iter(["cmdline", "environ"]):
        ours = (process.info["environ"] or {}).get("SPARK_CONF_DIR") == str(directory / "conf")
        if ours and sign in " ".join(process.info["cmdline"] or []):
            process.kill()


def living_workers(cluster: EmbeddedCluster) -> int:
    return sum(worker["state"] == "ALIVE" for worker in cluster.state()["workers"])


def test_an_address_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    cluster = EmbeddedCluster(tmp_path, workers=1)
    cluster.worker_hosts = ("192.0.2.1",)
    with pytest.raises(ConfigError, match=r"cannot use the address 192\.0\.2\.1: .* \(use an existing cluster"):
        cluster.start()


def test_a_remote_master_is_not_told_to_use_loopback(tmp_path: Path) -> None:
    conf = spark_conf(master="spark://elsewhere:7077", app_name="x", executors=3, directory=tmp_path)
    assert "spark.driver.host" not in conf
    assert "spark.executor.extraJavaOptions" not in conf
    assert conf["spark.dynamicAllocation.initialExecutors"] == "3"


def test_what_the_user_sets_has_the_last_word(tmp_path: Path) -> None:
    extra = {"spark.executor.memory": "2g"}
    conf = spark_conf(master="yarn", app_name="x", executors=1, directory=tmp_path, extra=extra)
    assert conf["spark.executor.memory"] == "2g"


def test_the_event_log_is_compressed_and_has_a_directory(tmp_path: Path) -> None:
    events = tmp_path / "events"
    conf = spark_conf(master="local", app_name="x", executors=1, directory=tmp_path, event_log=events)
    assert events.is_dir()
    assert conf["spark.eventLog.dir"] == events.as_uri()
    assert conf["spark.eventLog.compress"] == "true"


def test_who_does_not_have_the_secret_cannot_use_the_cluster(
    cluster: EmbeddedCluster, strangers: list[subprocess.Popen[str]]
) -> None:
    """The last test of this file, because the strangers take a minute to give up."""
    for stranger in strangers:
        out, errors = stranger.communicate()
        assert out.split()[-1:] == ["refused"], errors
    state = cluster.state()
    assert "stranger" not in {each["name"] for each in [*state["activeapps"], *state["completedapps"]]}
