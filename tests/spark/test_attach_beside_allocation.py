"""`hs.attach` in an application whose executors Spark's own dynamic allocation adds and takes away."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from homeostat.core.records import Record
from homeostat.spark.cluster.embedded import EmbeddedCluster
from homeostat.store.sqlite import SqliteStore

WaitUntil = Callable[[Callable[[], bool], str], None]
Homeostat = Callable[..., Any]

LIMIT_S = 120.0
RUN = "kept/ticks"
# It is busy as long as the file `busy` exists, runs as long as `run` does, and keeps telling what it sees of itself.
APP = """\
import json, os, sys, time
from pathlib import Path

import homeostat as hs
from homeostat.spark.cluster.embedded import spark_home
from homeostat.spark.cluster.java import find_java
from pyspark.sql import SparkSession

HOME, MASTER = Path({home!r}), {master!r}
os.environ |= {{"JAVA_HOME": str(find_java().home), "SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"}}
os.environ["PYSPARK_PYTHON"] = sys.executable
ALLOCATION = {{"enabled": "true", "shuffleTracking.enabled": "true", "minExecutors": "1", "maxExecutors": "3",
              "executorIdleTimeout": "2s", "schedulerBacklogTimeout": "1s"}}
builder = SparkSession.builder.master(MASTER).appName("ticks").config("spark.executor.cores", "1")
builder = builder.config("spark.executor.memory", "512m").config("spark.ui.port", "0")
for name, value in ALLOCATION.items():
    builder = builder.config(f"spark.dynamicAllocation.{{name}}", value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")


def work(frame, batch):
    if (HOME / "busy").exists():
        spark.sparkContext.parallelize(range(6), 6).foreach(lambda _: time.sleep(2.0))


ticks = spark.readStream.format("rate").load().writeStream.queryName("ticks").foreachBatch(work)
ticks.trigger(processingTime="1 second").start()
attached = hs.attach(spark, hs.Provisioning(), config=HOME / "homeostat.toml", directory=HOME / "kept")
inner, threads = spark.sparkContext._jsc.sc(), spark.sparkContext._jvm.java.lang.Thread
while (HOME / "run").exists():
    names = [str(thread.getName()) for thread in threads.getAllStackTraces().keySet()]
    status = {{
        "executors": inner.statusStore().executorList(True).size() - 1,
        "allocates": any(name.startswith("spark-dynamic-executor-allocation") for name in names),
        "steers": attached.steers,
        "looked_after": attached.running,
    }}
    (HOME / "status.new").write_text(json.dumps(status))
    (HOME / "status.new").replace(HOME / "status")
    time.sleep(0.2)
attached.stop()
for query in spark.streams.active:
    query.stop()
spark.stop()
"""


@contextmanager
def application(home: Path, master: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """Start the application of somebody else in its own process. Yield a function that reads its reported status."""
    (home / "homeostat.toml").write_text(f'store = "{home / "log.sqlite"}"\n')
    (home / "app.py").write_text(APP.format(home=str(home), master=master))
    (home / "run").touch()
    with (home / "output").open("wb") as output:
        process = subprocess.Popen([sys.executable, str(home / "app.py")], cwd=home, stdout=output, stderr=output)

    def status() -> dict[str, Any]:
        assert process.poll() is None, (home / "output").read_text()
        return dict(json.loads((home / "status").read_text())) if (home / "status").exists() else {}

    try:
        yield status
        (home / "run").unlink()
        assert process.wait(LIMIT_S) == 0, (home / "output").read_text()
    finally:
        process.kill()
        process.wait()


def records(home: Path, *kinds: str) -> list[Record]:
    store = SqliteStore(home / "log.sqlite", read_only=True)
    try:
        return store.records(RUN, kinds=kinds)
    finally:
        store.close()


@pytest.mark.soak
def test_executors_are_sparks_until_the_first_action_and_then_no_longer(
    cluster: EmbeddedCluster, homeostat: Homeostat, tmp_path: Path, wait_until: WaitUntil
) -> None:
    with application(tmp_path, cluster.master_url) as status:

        def is_so(**values: Any) -> bool:
            now = status()
            return bool(now) and values.items() <= now.items()

        def another_batch() -> None:
            batch_count = len(records(tmp_path, "batch"))
            wait_until(lambda: len(records(tmp_path, "batch")) > batch_count + 3, "it goes on")

        wait_until(lambda: is_so(looked_after=True, executors=1), "it is looked after")
        wait_until(lambda: (tmp_path / "log.sqlite").exists() and bool(records(tmp_path, "batch")), "batches are seen")
        capabilities = json.loads((tmp_path / "kept" / "capabilities.json").read_text())
        (executors,) = [each for each in capabilities if each["what"] == "change the number of executors"]
        assert executors["can"]
        assert executors["reason"] == "standalone, instead of Spark's dynamic allocation"

        # Spark adds and takes away as it would alone, and nobody puts back what it did.
        (tmp_path / "busy").touch()
        wait_until(lambda: is_so(executors=3), "Spark adds executors")
        (tmp_path / "busy").unlink()
        wait_until(lambda: is_so(executors=1), "Spark takes them away")
        another_batch()
        assert is_so(executors=1, allocates=True, steers=False, looked_after=True)
        assert records(tmp_path, "action") == []

        # One action, here a person's, and they are Homeostat's: idle ones stay, where Spark would end them.
        assert homeostat("apply", "scale", "--executors", 2, "--store", tmp_path / "log.sqlite", "--run", RUN).code == 0
        wait_until(lambda: is_so(executors=2, allocates=False, steers=True), "it is held at two")
        another_batch()
        assert is_so(executors=2, allocates=False, steers=True)
        assert len(records(tmp_path, "action")) == 1
