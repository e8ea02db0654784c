"""The Spark session of a managed application."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.spark.cluster.embedded import MASTER_HOST, spark_home
from homeostat.spark.cluster.java import find_java
from homeostat.spark.cluster.leftovers import LOCAL, java_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FOREVER = "2147483s"
# If you stop a query in the middle of a Python sink, Spark matches the sink's traceback with a regular expression that
# recurses once per character. With the default stack size the query's thread dies.
DEEP_STACK = "-Xss16m"
# Many short-lived JVMs share this machine: with quick compilation, each of them needs half of the CPU time to warm up.
QUICK_TO_WARM = "-XX:TieredStopAtLevel=1"
LIGHT_COLLECTOR = "-XX:+UseSerialGC"
# How many old parts of a rolling log are kept in addition to the current one. A choice.
LOG_PARTS = 3
# The smallest part of an event log that Spark allows. With small parts, readers have less to read again, and pruning
# has less to read.
EVENT_LOG_PART = "10m"
DRIVER_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.log.ref = log
appender.log.type = RollingFile
appender.log.name = log
appender.log.fileName = {log}
appender.log.filePattern = {log}.%i
appender.log.policies.type = Policies
appender.log.policies.size.type = SizeBasedTriggeringPolicy
appender.log.policies.size.size = {part_bytes}
appender.log.strategy.type = DefaultRolloverStrategy
appender.log.strategy.max = {parts}
appender.log.layout.type = PatternLayout
appender.log.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""
EXECUTOR_LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.log.ref = log
appender.log.type = Console
appender.log.name = log
appender.log.target = SYSTEM_ERR
appender.log.layout.type = PatternLayout
appender.log.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


def spark_conf(
    *,
    master: str,
    app_name: str,
    executors: int,
    directory: Path,
    executor_cores: int = 1,
    executor_memory: str = "512m",
    event_log: Path | None = None,
    log_bytes: int = 64_000_000,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """All settings for Spark; `extra` overrides the others. Logs and scratch files go below `directory`, and the
    driver's log takes at most `log_bytes`."""
    directory = directory.resolve()
    conf = {"spark.master": master, "spark.app.name": app_name, **_general(directory)}
    conf |= _java(master, directory, log_bytes)
    conf |= _python(master)
    if _on_this_machine(master):
        conf |= _loopback(directory)
    if not _local(master):
        conf |= _steerable_executors(executors, executor_cores, executor_memory)
    if event_log is not None:
        event_log.mkdir(parents=True, exist_ok=True)
        # The log is written in parts, so that the oldest can be deleted while the application runs. Of Spark's codecs,
        # Homeostat can read zstd.
        conf |= {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": event_log.resolve().as_uri(),
            "spark.eventLog.rolling.enabled": "true",
            "spark.eventLog.rolling.maxFileSize": EVENT_LOG_PART,
            "spark.eventLog.compress": "true",
            "spark.eventLog.compression.codec": "zstd",
        }
    return conf | dict(extra or {})


def build_session(conf: Mapping[str, str]) -> SparkSession:
    """Start Spark with these settings. A process has one session."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["SPARK_HOME"] = str(spark_home())  # a value of another installation would not match
    os.environ["PYSPARK_PYTHON"] = conf["spark.pyspark.python"]  # Spark reads the setting only under spark-submit
    if conf.get("spark.driver.host") == MASTER_HOST:
        os.environ["SPARK_LOCAL_IP"] = MASTER_HOST  # the only way to bind Spark's pages to loopback
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _general(directory: Path) -> dict[str, str]:
    return {
        "spark.scheduler.mode": "FAIR",
        "spark.sql.warehouse.dir": (directory / "warehouse").as_uri(),
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.numRecentProgressUpdates": "200",
        # The sensors read a batch soon after it ended. Older ones only cost the driver memory.
        "spark.ui.retainedJobs": "300",
        "spark.ui.retainedStages": "600",
        "spark.ui.retainedTasks": "20000",
        "spark.ui.retainedDeadExecutors": "100",
        "spark.sql.ui.retainedExecutions": "100",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        # With locality, the rows of an uneven source would be read where most were written, not on all executors.
        "spark.shuffle.reduceLocality.enabled": "false",
        # Notice a lost executor within half a minute instead of two.
        "spark.executor.heartbeatInterval": "2s",
        "spark.storage.blockManagerHeartbeatTimeoutMs": "30000",
        "spark.network.timeoutInterval": "5s",
    }


def _python(master: str) -> dict[str, str]:
    """Executors on this machine use this Python. On other machines PYSPARK_PYTHON may name another one."""
    on_executors = sys.executable if _on_this_machine(master) else os.environ.get("PYSPARK_PYTHON", sys.executable)
    return {"spark.pyspark.python": on_executors, "spark.pyspark.driver.python": sys.executable}


def _steerable_executors(executors: int, cores: int, memory: str) -> dict[str, str]:
    """Executors can be added and removed at run time only if dynamic allocation is on. The long timeouts keep it from
    acting by itself."""
    return {
        "spark.executor.cores": str(cores),
        "spark.executor.memory": memory,
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(executors),
        "spark.dynamicAllocation.initialExecutors": str(executors),
        "spark.dynamicAllocation.executorIdleTimeout": FOREVER,
        "spark.dynamicAllocation.schedulerBacklogTimeout": FOREVER,
        "spark.dynamicAllocation.sustainedSchedulerBacklogTimeout": FOREVER,
    }


def _loopback(directory: Path) -> dict[str, str]:
    return {
        "spark.driver.host": MASTER_HOST,
        "spark.driver.bindAddress": MASTER_HOST,
        # Everybody on this machine can open the pages of the driver.
        "spark.ui.killEnabled": "false",
        "spark.local.dir": str(directory / LOCAL),
    }


def _java(master: str, directory: Path, log_bytes: int) -> dict[str, str]:
    """The driver logs to a file, because its standard error belongs to the application. The files that Java unpacks go
    below the directory as well, so that they are deleted later if the process is killed."""
    files = directory / "conf"
    logs = directory / "logs"
    for path in (files, logs):
        path.mkdir(parents=True, exist_ok=True)
    driver, executor = files / "driver-log4j2.properties", files / "executor-log4j2.properties"
    part_bytes = log_bytes // (LOG_PARTS + 1)
    driver.write_text(DRIVER_LOGGING.format(log=logs / "driver.log", part_bytes=part_bytes, parts=LOG_PARTS))
    small_cluster = _on_this_machine(master) and not _local(master)
    unpacked = f'"-Djava.io.tmpdir={java_files(directory)}"'
    deep = f"{DEEP_STACK} {QUICK_TO_WARM}" if small_cluster else DEEP_STACK
    conf = {"spark.driver.extraJavaOptions": f"{deep} {unpacked} -Dlog4j2.configurationFile={driver.as_uri()}"}
    if small_cluster:
        executor.write_text(EXECUTOR_LOGGING)
        options = f"{LIGHT_COLLECTOR} {QUICK_TO_WARM} {unpacked} -Dlog4j2.configurationFile={executor.as_uri()}"
        conf["spark.executor.extraJavaOptions"] = options
    return conf


def _local(master: str) -> bool:
    """Whether driver and executor are one process."""
    return master == "local" or master.startswith("local[")


def _on_this_machine(master: str) -> bool:
    return master.startswith(("local", "spark://127.", "spark://localhost:"))
