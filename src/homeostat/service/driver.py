"""The driver process of `homeostat run`: the session, the queries, and the loop in a thread beside them."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.config import Config
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.reasons import first_line
from homeostat.service import applications, preflight
from homeostat.service.launch import KNOBS, LEASE, Launch, read_json, write_json
from homeostat.service.lease import Lease
from homeostat.service.loop import Loop, LoopKeeper
from homeostat.service.manager import Manager
from homeostat.service.managing import manager
from homeostat.service.overview import announce
from homeostat.spark.application import Application
from homeostat.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOOK_AGAIN_S = 0.5
QUERY_FAILED = 4
SPARKS_OWN = "spark"  # Spark's dynamic allocation decides, and Homeostat only watches


def main() -> int:
    launch = Launch.from_json(sys.argv[1])
    try:
        return drive(launch)
    except HomeostatError as error:
        say(error.line)
        return error.exit_code


def say(text: str) -> None:
    print(f"homeostat: {text}", file=sys.stderr, flush=True)


def drive(launch: Launch) -> int:
    directory = Path(launch.directory).resolve()
    config, pipelines = preflight.check(launch)
    applications.send_along(launch.app)
    with Lease(directory / LEASE):
        application = Application(
            pipelines,
            directory,
            read_json(directory / KNOBS),
            lambda knobs: write_json(directory / KNOBS, knobs),
            launch.room,
            steer=launch.allocation != SPARKS_OWN,
        )
        application.open(_session(launch, application, directory))
        try:
            application.start()
            return _regulate(launch, config, application, directory)
        finally:
            application.stop()


def _session(launch: Launch, application: Application, directory: Path) -> SparkSession:
    from homeostat.spark.session import build_session, spark_conf

    file, _ = applications.parts(launch.app)
    conf = spark_conf(
        master=launch.master,
        app_name=file.stem,
        executors=application.wanted_executors,
        directory=directory,
        event_log=directory / "events",
        extra={"spark.executorEnv.PYTHONPATH": str(file.resolve().parent), **launch.conf},
    )
    try:
        return build_session(conf)
    except HomeostatError:
        raise
    except Exception as error:
        raise ConfigError(f"Spark does not start: {first_line(error)}", where=f"--master {launch.master}") from error


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
