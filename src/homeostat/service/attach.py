"""`hs.attach(spark, objective=…)`: one line in an application that already exists. Its queries are never restarted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat import config as configuration
from homeostat.objectives import Wanted, combined
from homeostat.service.launch import STARTED
from homeostat.service.lease import Lease, LeaseTakenError
from homeostat.service.loop import Loop
from homeostat.service.managing import manager, objective_of, policy_of
from homeostat.service.overview import announce
from homeostat.spark.application import Application
from homeostat.spark.capabilities import look_around
from homeostat.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from homeostat.core.state import Mode
    from homeostat.service.manager import Manager

LOOK_AGAIN_S = 1.0
DIRECTORY = Path(".homeostat")
ACTING = ("earn", "regulate")


class Attachment:
    """Watches for the application's queries and runs a loop over those there are; a new query starts a new loop."""

    def __init__(self, spark: SparkSession, config: configuration.Config, objective: Wanted, directory: Path) -> None:
        self._spark, self._config, self._directory = spark, config, directory
        self._objective = combined(objective) if objective is not None else config.objective
        self._lease = Lease(directory / "lease")
        self._stopping = threading.Event()
        self._application: Application | None = None
        self._loop: Loop | None = None
        self._thread = threading.Thread(target=self._watch, name="homeostat attached", daemon=True)

    def start(self) -> None:
        if look_around(self._spark).connect:
            say("through Spark Connect the driver's scheduler cannot be reached; this application is not looked after")
            return
        try:
            self._lease.take()
        except LeaseTakenError as error:
            say(f"{error.line}; this one stays away")
            return
        except OSError as error:
            say(f"{error}; this application is not looked after")
            return
        self._thread.start()

    def stop(self) -> None:
        """Let go of the application: its queries and executors stay as they are."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(30.0)
        self._lease.release()

    @property
    def running(self) -> bool:
        return self._loop is not None and self._loop.thread.is_alive()

    def _watch(self) -> None:
        watched: frozenset[str] = frozenset()
        said = ""
        while not self._stopping.is_set():
            try:
                queries = [query for query in self._spark.streams.active if query.isActive]
                now = frozenset(str(query.runId) for query in queries)
                if now != watched:
                    self._let_go()
                    if queries:
                        self._take_up(queries)
                    watched = now
            except Exception as error:  # the application must not suffer, whatever it is
                complaint = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}; the application goes on"
                if complaint != said:  # it is tried again every second
                    say(complaint)
                    said = complaint
            self._stopping.wait(LOOK_AGAIN_S)
        self._let_go()

    def _take_up(self, queries: Sequence[StreamingQuery]) -> None:
        steer = self._config.mode in ACTING
        application = Application.around(self._spark, queries, self._objective, self._directory, steer)
        self._application = application
        application.start()
        announce(self._directory, application, self._config)

        def managers() -> Sequence[Manager]:
            store = SqliteStore(self._config.store)
            return [manager(pipeline, self._config, application, store, say) for pipeline in application.pipelines]

        self._loop = Loop(managers, say)
        self._loop.start()

    def _let_go(self) -> None:
        if self._loop is not None:
            self._loop.stop()
            self._loop = None
        if self._application is not None:
            self._application.stop(session=False)
            self._application = None
            (self._directory / STARTED).unlink(missing_ok=True)


def say(text: str) -> None:
    print(f"homeostat: {text}", file=sys.stderr, flush=True)


def attach(
    spark: SparkSession,
    objective: Wanted = None,
    *,
    mode: Mode | None = None,
    config: str | Path | None = None,
    directory: str | Path | None = None,
) -> Attachment:
    """Look after the streaming queries of this session, those that run and those to come.

    Only what needs no restart is done, and only in a mode that acts; bounds are reported, never set. Settings come from
    `config`, or from homeostat.toml of the working directory. Returns at once; `stop()` lets go.
    """
    loaded = configuration.load(config, flags={"mode": mode})
    policy_of(loaded, objective_of(loaded, combined(objective)))
    home = Path(directory) if directory is not None else DIRECTORY / str(spark.conf.get("spark.app.name"))
    attachment = Attachment(spark, loaded, objective, home.resolve())
    attachment.start()
    return attachment
