"""The driver process of `homeostat run`: the Spark session, the queries, and the loop in its own thread."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.core.causes import NO_MANAGER, QUERY_STOPPED
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.runtime import pipeline_files, preflight
from homeostat.runtime.alarms import Alarm
from homeostat.runtime.announcement import announce
from homeostat.runtime.file_limits import EVENTS
from homeostat.runtime.hold import TAKEN_OVER, ApplicationHold
from homeostat.runtime.java_watch import watch_java
from homeostat.runtime.kept_knobs import KeptKnobs
from homeostat.runtime.launch import KNOBS, QUERY_FAILED, Launch
from homeostat.runtime.lease import Claim
from homeostat.runtime.loop_thread import Loop, LoopKeeper
from homeostat.runtime.messages import say
from homeostat.runtime.query_manager import manager_maker, uneven_partitions
from homeostat.runtime.start_watch import StartWatch
from homeostat.settings_file import Config
from homeostat.spark.application import Application, waiting_queries
from homeostat.spark_errors import first_line, given_up, java_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOOK_AGAIN_S = 0.5
LOG, JAVA_OUTPUT = Path("logs") / "driver.log", Path("logs") / "driver.err"
JAVA_ENDED = "JAVA_GATEWAY_EXITED"
STANDARD_ERROR = 2
SPARKS_OWN = "spark"  # Spark's dynamic allocation sets the number of executors, and Homeostat only watches


def main() -> int:
    launch = Launch.from_json(sys.argv[1])
    try:
        return drive(launch)
    except HomeostatError as error:
        say(error.line)
        return error.exit_code
    except Exception as error:
        if os.environ.get("HOMEOSTAT_DEBUG"):
            raise
        what = f"{type(error).__name__}: {first_line(error)}"
        log = Path(launch.directory) / LOG
        say(f"the driver failed: {what} (see {log}; set HOMEOSTAT_DEBUG=1 to print the traceback)")
        return HomeostatError.exit_code


def drive(launch: Launch) -> int:
    directory = Path(launch.directory).resolve()
    config, pipelines = preflight.check(launch)
    pipeline_files.send_along(launch.app)
    with ApplicationHold(directory, config.store, application=config.application) as hold:
        if hold.name != (config.application or directory.name):
            say(f"the log {config.store} lists this application as {hold.name}")
        knobs = KeptKnobs(directory / KNOBS, config.store, hold, say)
        application = Application(
            pipelines,
            directory,
            knobs.read(),
            knobs.write,
            launch.room,
            steer=launch.allocation != SPARKS_OWN,
            uneven=uneven_partitions(config),
            name=hold.name,
        )
        stopping = _stop_signals()
        application.open(_session(launch, config, application, directory))
        application.sensors.sources.publish_as(config.kafka.publish_group)
        watch_java(stopping, say)
        try:
            with (
                Claim(application.spark.sparkContext.applicationId),
                StartWatch(partial(waiting_queries, application), say),
            ):
                application.start(stopping)
                return _regulate(launch, config, application, hold, stopping)
        finally:
            application.stop()


def _session(launch: Launch, config: Config, application: Application, directory: Path) -> SparkSession:
    from homeostat.spark.cluster.kafka_connector import with_connector
    from homeostat.spark.cluster.session import build_session, spark_conf

    file, _ = pipeline_files.parts(launch.app)
    conf = spark_conf(
        master=launch.master,
        app_name=file.stem,
        executors=application.wanted_executors,
        directory=directory,
        event_log=directory / EVENTS,
        log_bytes=config.files.driver_log,
        extra={"spark.executorEnv.PYTHONPATH": str(file.resolve().parent), **launch.conf},
    )
    java_output, log = directory / JAVA_OUTPUT, directory / LOG
    old_bytes = log.stat().st_size if log.exists() else 0
    try:
        with _standard_error_in(java_output):
            return build_session(with_connector(conf))
    except HomeostatError:
        raise
    except Exception as error:
        if JAVA_ENDED in str(error):
            reason = java_reason(java_output.read_text(errors="replace"))
        else:
            reason = given_up(log.read_bytes()[old_bytes:].decode(errors="replace") if log.exists() else "")
        what = f"Spark did not start on {launch.master}: {reason or first_line(error)}"
        raise ConfigError(what, fix=f"see the files in {java_output.parent}") from error


@contextmanager
def _standard_error_in(file: Path) -> Iterator[None]:
    """The Java process inherits this, so its long startup messages go to a file instead of the user's terminal."""
    sys.stderr.flush()
    ours = os.dup(STANDARD_ERROR)
    try:
        file.write_bytes(b"")
        with file.open("ab") as output:  # for appending, so that the file can be cut while Java writes
            os.dup2(output.fileno(), STANDARD_ERROR)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(ours, STANDARD_ERROR)
        os.close(ours)


def _stop_signals() -> threading.Event:
    """An event that is set when this process is asked to stop, even before its queries run."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    return stopping


def _regulate(
    launch: Launch, config: Config, application: Application, hold: ApplicationHold, stopping: threading.Event
) -> int:
    announce(application.directory, application, config, hold.identity)
    make_managers = manager_maker(config, application, hold, say)
    runs = [application.run_name(pipeline.name) for pipeline in application.pipelines]
    alarm = Alarm(lambda: hold.open_log(*runs), runs, say)
    keeper = LoopKeeper(
        lambda: Loop(make_managers, say), say, partial(alarm.ring, NO_MANAGER), silent_s=launch.silent_s
    )
    keeper.start()
    until_s = time.monotonic() + launch.for_s if launch.for_s is not None else float("inf")
    try:
        while not stopping.is_set() and time.monotonic() < until_s and application.running() and not hold.lost:
            keeper.check()
            stopping.wait(LOOK_AGAIN_S)
    finally:
        keeper.stop()
    if hold.lost:
        say(TAKEN_OVER)
        return HomeostatError.exit_code
    if application.failure:
        alarm.ring(QUERY_STOPPED, application.failure)
        return QUERY_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
