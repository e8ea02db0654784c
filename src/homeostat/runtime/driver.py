"""The driver process of `homeostat run`: the session, the queries, and the loop in a thread beside them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.config import Config
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.runtime import pipeline_files, preflight
from homeostat.runtime.launch import KNOBS, LEASE, Launch, read_json, write_json
from homeostat.runtime.lease import Claim, Lease
from homeostat.runtime.loop_thread import Loop, LoopKeeper
from homeostat.runtime.manager import Manager
from homeostat.runtime.query_manager import manager, uneven_partitions
from homeostat.spark.application import Application
from homeostat.spark_errors import first_line, given_up, java_reason
from homeostat.store.sqlite import SqliteStore
from homeostat.views.overview import announce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOOK_AGAIN_S = 0.5
QUERY_FAILED = 4
LOG, JAVA_OUTPUT = Path("logs") / "driver.log", Path("logs") / "driver.err"
JAVA_ENDED = "JAVA_GATEWAY_EXITED"
STANDARD_ERROR = 2
SPARKS_OWN = "spark"  # Spark's dynamic allocation decides, and Homeostat only watches


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
        say(
            f"the driver failed: {what} (see {Path(launch.directory) / LOG}; HOMEOSTAT_DEBUG=1 shows where it happened)"
        )
        return HomeostatError.exit_code


def say(text: str) -> None:
    print(f"homeostat: {text}", file=sys.stderr, flush=True)


def drive(launch: Launch) -> int:
    directory = Path(launch.directory).resolve()
    config, pipelines = preflight.check(launch)
    pipeline_files.send_along(launch.app)
    with Lease(directory / LEASE):
        application = Application(
            pipelines,
            directory,
            read_json(directory / KNOBS),
            lambda knobs: write_json(directory / KNOBS, knobs),
            launch.room,
            steer=launch.allocation != SPARKS_OWN,
            uneven=uneven_partitions(config),
        )
        application.open(_session(launch, application, directory))
        try:
            with Claim(application.spark.sparkContext.applicationId):
                application.start()
                return _regulate(launch, config, application, directory)
        finally:
            application.stop()


def _session(launch: Launch, application: Application, directory: Path) -> SparkSession:
    from homeostat.spark.cluster.session import build_session, spark_conf

    file, _ = pipeline_files.parts(launch.app)
    conf = spark_conf(
        master=launch.master,
        app_name=file.stem,
        executors=application.wanted_executors,
        directory=directory,
        event_log=directory / "events",
        extra={"spark.executorEnv.PYTHONPATH": str(file.resolve().parent), **launch.conf},
    )
    said, log = directory / JAVA_OUTPUT, directory / LOG
    begins = log.stat().st_size if log.exists() else 0
    try:
        with _standard_error_in(said):
            return build_session(conf)
    except HomeostatError:
        raise
    except Exception as error:
        if JAVA_ENDED in str(error):
            reason = java_reason(said.read_text(errors="replace"))
        else:
            reason = given_up(log.read_bytes()[begins:].decode(errors="replace") if log.exists() else "")
        what = f"Spark does not start on {launch.master}: {reason or first_line(error)}"
        raise ConfigError(what, fix=f"see {said.parent}") from error


@contextmanager
def _standard_error_in(file: Path) -> Iterator[None]:
    """Java's process keeps what it inherits here: what it says in many lines, or without need, is not the user's."""
    sys.stderr.flush()
    ours = os.dup(STANDARD_ERROR)
    try:
        with file.open("wb") as opened:
            os.dup2(opened.fileno(), STANDARD_ERROR)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(ours, STANDARD_ERROR)
        os.close(ours)


def _regulate(launch: Launch, config: Config, application: Application, directory: Path) -> int:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    announce(directory, application, config)
    keeper = LoopKeeper(lambda: Loop(_managers(config, application), say), say, silent_s=launch.silent_s)
    keeper.start()
    until_s = time.monotonic() + launch.for_s if launch.for_s is not None else float("inf")
    try:
        while not stopping.is_set() and time.monotonic() < until_s and application.running():
            keeper.check()
            stopping.wait(LOOK_AGAIN_S)
    finally:
        keeper.stop()
    if application.failure:
        say(application.failure)
        return QUERY_FAILED
    return 0


def _managers(config: Config, application: Application) -> Callable[[], Sequence[Manager]]:
    """Made in the loop's own thread: a store belongs to one thread."""

    def make() -> Sequence[Manager]:
        store = SqliteStore(config.store)
        return [manager(pipeline, config, application, store, say) for pipeline in application.pipelines]

    return make


if __name__ == "__main__":
    sys.exit(main())
