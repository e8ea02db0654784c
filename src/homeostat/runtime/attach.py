"""`hs.attach(spark, objective=…)`: one line in an application that already exists. Its queries are never restarted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat import config as configuration
from homeostat.objectives import Wanted, combined
from homeostat.runtime.launch import CAPABILITIES, LEASE, STARTED, write_json
from homeostat.runtime.lease import Claim, Lease, LeaseTakenError
from homeostat.runtime.loop_thread import Loop, LoopKeeper
from homeostat.runtime.query_manager import manager, objective_of, policy_of, uneven_partitions
from homeostat.spark.act.capabilities import judge, look_around
from homeostat.spark.application import Application
from homeostat.store.sqlite import SqliteStore
from homeostat.views.overview import announce

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from homeostat.core.loop_state import Mode
    from homeostat.runtime.manager import Manager

LOOK_AGAIN_S = 1.0
DIRECTORY = Path(".homeostat")


class Attachment:
    """Watches for the application's queries and runs a loop over those there are; a new query starts a new loop."""

    def __init__(self, spark: SparkSession, config: configuration.Config, objective: Wanted, directory: Path) -> None:
        self._spark, self._config, self._directory = spark, config, directory
        self._objective = combined(objective) if objective is not None else config.objective
        self._holds: list[Claim | Lease] = []
        self._stopping = threading.Event()
        self._application: Application | None = None
        self._keeper: LoopKeeper | None = None
        self._thread = threading.Thread(target=self._watch, name="homeostat attached", daemon=True)

    def start(self) -> None:
        here = look_around(self._spark)
        try:
            if here.connect:
                write_json(self._directory / CAPABILITIES, [asdict(finding) for finding in judge(here).table])
                say("through Spark Connect the driver cannot be reached; this application is not looked after")
                return
            for hold in (Claim(self._spark.sparkContext.applicationId), Lease(self._directory / LEASE)):
                hold.take()
                self._holds.append(hold)
        except LeaseTakenError as error:
            self._release()
            say(f"{error.line}; this one stays away")
        except OSError as error:
            self._release()
            say(f"{error}; this application is not looked after")
        else:
            self._thread.start()

    def stop(self) -> None:
        """Let go of the application: its queries and executors stay as they are."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(30.0)
        self._release()

    def _release(self) -> None:
        while self._holds:
            self._holds.pop().release()

    @property
    def running(self) -> bool:
        return self._keeper is not None and self._keeper.loop.thread.is_alive()

    @property
    def steers(self) -> bool:
        """Whether the executors are no longer left to Spark: from the first action on."""
        return self._application is not None and self._application.steers

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
                    else:
                        self._withdraw()
                    watched = now
                if self._keeper is not None:
                    self._keeper.check()
            except Exception as error:  # the application must not suffer, whatever it is
                complaint = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}; the application goes on"
                if complaint != said:  # it is tried again every second
                    say(complaint)
                    said = complaint
            self._stopping.wait(LOOK_AGAIN_S)
        self._let_go()
        self._withdraw()

    def _take_up(self, queries: Sequence[StreamingQuery]) -> None:
        application = Application.around(
            self._spark, queries, self._objective, self._directory, uneven_partitions(self._config)
        )
        self._application = application
        application.start()
        announce(self._directory, application, self._config)

        def managers() -> Sequence[Manager]:
            store = SqliteStore(self._config.store)
            return [manager(pipeline, self._config, application, store, say) for pipeline in application.pipelines]

        self._keeper = LoopKeeper(lambda: Loop(managers, say), say)
        self._keeper.start()

    def _let_go(self) -> None:
        if self._keeper is not None:
            self._keeper.stop()
            self._keeper = None
        if self._application is not None:
            self._application.stop(session=False)
            self._application = None

    def _withdraw(self) -> None:
        """What was announced is over. Between two sets of queries it stands: the application is looked after on."""
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
