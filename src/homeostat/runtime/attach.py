"""`hs.attach(spark, objective=…)`: one line that adds Homeostat to an existing application.

Homeostat never restarts the queries of an attached application, except those that the application hands over.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from homeostat import settings_file
from homeostat.api_objectives import ObjectiveArgument, combine
from homeostat.core.causes import NO_MANAGER
from homeostat.core.configuration import ROWS_PER_TRIGGER, TRIGGER_S, Value
from homeostat.core.errors import ConfigError, NewerLogError, NoLogError
from homeostat.runtime.alarms import Alarm
from homeostat.runtime.announcement import HOME, announce, announce_driver, withdraw
from homeostat.runtime.hold import TAKEN_OVER, ApplicationHold
from homeostat.runtime.launch import CAPABILITIES, write_json
from homeostat.runtime.lease import Claim, LeaseTakenError
from homeostat.runtime.loop_thread import Loop, LoopKeeper
from homeostat.runtime.messages import say
from homeostat.runtime.query_manager import manager_maker, objective_of, policy_of, uneven_partitions
from homeostat.spark.act.capabilities import judge, look_around
from homeostat.spark.act.managed_query import Bounds
from homeostat.spark.application import Application
from homeostat.spark.application_query import ApplicationQuery
from homeostat.spark.handover import Handover
from homeostat.spark.lasting_query import LastingQuery
from homeostat.spark_errors import first_line
from homeostat.strict import units

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from homeostat.core.loop_state import Mode

T = TypeVar("T")
NO_QUERIES: Mapping[str, Callable[..., Any]] = MappingProxyType({})
LOOK_AGAIN_S = 1.0
STOP_LIMIT_S = 30.0


class Attachment:
    """Watches the application for streaming queries and manages those that run.

    When the set of running queries changes, a new loop starts.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: settings_file.Config,
        objective: ObjectiveArgument,
        directory: Path,
        bounds: Bounds,
    ) -> None:
        self._spark, self._config, self._directory, self.bounds = spark, config, directory, bounds
        self._objective = combine(objective) if objective is not None else config.objective
        self._claim: Claim | None = None
        self._stopping = threading.Event()
        self._hold = ApplicationHold(directory, config.store, application=config.application, pause=self._stopping.wait)
        self._application: Application | None = None
        self._keeper: LoopKeeper | None = None
        self.queries: dict[str, StreamingQuery | LastingQuery] = {}
        self._handed: dict[str, ApplicationQuery] = {}
        self._handing = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="homeostat attached", daemon=True)

    def begin(self) -> None:
        surroundings = look_around(self._spark)
        try:
            if surroundings.connect:
                write_json(self._directory / CAPABILITIES, [asdict(finding) for finding in judge(surroundings).table])
                say("Homeostat cannot manage this application: a Spark Connect session has no access to the driver")
                return
            self._claim = Claim(self._spark.sparkContext.applicationId)
            self._claim.take()
            self._hold.take_files()
            announce_driver(self._directory, self._spark, self._config, self._hold.identity, {})
        except (LeaseTakenError, ConfigError) as error:
            self._release()
            say(f"{error.line}; this call to hs.attach has no effect")
        except OSError as error:
            self._release()
            say(f"Homeostat does not manage this application: {error}")
        else:
            self._thread.start()

    def start(self, writer: DataStreamWriter, name: str = "") -> StreamingQuery | LastingQuery:
        """Use this instead of `writer.start()`. Homeostat can then restart the query, for example with another number
        of state partitions. The default for the name is that from `queryName`."""
        return self._hand_over(Handover.of_writer(self._spark, writer, name))

    def hand_over(self, queries: Mapping[str, Callable[..., Any]]) -> None:
        self.queries = {name: self._hand_over(Handover(self._spark, name, build)) for name, build in queries.items()}

    def _hand_over(self, handover: Handover) -> StreamingQuery | LastingQuery:
        """Start the query. If Homeostat cannot restart it or does not manage the application, start it with Spark
        alone."""
        refusal = handover.refusal
        if refusal:
            say(f"Homeostat never restarts query {handover.name}, because {refusal}")
        if refusal or not self._thread.is_alive():
            query: StreamingQuery = handover.start_plainly()
            return query
        with self._handing:  # or the other thread could take it for a query that the application started itself
            handed = handover.start(self._directory, self._objective, self.bounds)
            self._handed[handover.name] = handed
        if not self._thread.is_alive():  # it has ended in the meantime, so nothing would restart the query
            handed.handed.let_go()
        return LastingQuery(handed.handed)

    def stop(self) -> None:
        """Stop managing the application. Its queries and executors stay as they are."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_LIMIT_S)
        self._release()

    def _release(self) -> None:
        self._hold.release()
        if self._claim is not None:
            self._claim.release()

    @property
    def running(self) -> bool:
        return self._keeper is not None and self._keeper.loop.thread.is_alive()

    @property
    def steers(self) -> bool:
        """Whether Homeostat has taken over the executors from Spark, which it does at the first action."""
        return self._application is not None and self._application.steers

    def _watch(self) -> None:
        watched: tuple[frozenset[str], ...] = ()
        last_complaint = ""
        while not self._stopping.is_set() and not self._hold.lost:
            try:
                self._hold_log()
                queries, handed = self._present()
                present = frozenset(str(query.runId) for query in queries), frozenset(each.name for each in handed)
                if present != watched:
                    self._let_go()
                    if queries or handed:
                        self._take_up(queries, handed)
                    else:
                        announce_driver(self._directory, self._spark, self._config, self._hold.identity, {})
                    watched = present
                if self._keeper is not None:
                    self._keeper.check()
            except (LeaseTakenError, ConfigError, NewerLogError, NoLogError) as error:
                say(f"{error.line}; Homeostat does not manage this application")
                break
            except Exception as error:  # no failure may affect the application
                reason = str(error).partition("\n")[0]
                complaint = f"{type(error).__name__}: {reason}; the application keeps running; Homeostat tries again"
                if complaint != last_complaint:  # it tries again every second
                    say(complaint)
                    last_complaint = complaint
            if self._keeper is None:
                self._tend_handed()
            self._stopping.wait(LOOK_AGAIN_S)
        if self._hold.lost:
            say(f"{TAKEN_OVER}; the queries keep running without it")
        self._let_go()
        for query in self._handed.values():
            query.handed.let_go()
        withdraw(self._directory)
        self._release()

    def _tend_handed(self) -> None:
        """Restart handed-over queries that failed. While a loop runs, the `Application` does this."""
        for query in tuple(self._handed.values()):
            try:
                report = query.handed.tend()
            except Exception as error:  # the next look tries again
                report = first_line(error)
            if report:
                say(f"query {query.name}: {report}")

    def _present(self) -> tuple[list[StreamingQuery], list[ApplicationQuery]]:
        """The queries that the application runs itself, and those that it has handed over."""
        with self._handing:
            self._handed = {name: each for name, each in self._handed.items() if not each.handed.is_over}
            active = [query for query in self._spark.streams.active if query.isActive]
            return [each for each in active if each.name not in self._handed], list(self._handed.values())

    def _hold_log(self) -> None:
        """Runs in this thread, because it may wait for another manager that does not respond."""
        if not self._hold.holds_log:
            self._hold.take_log()

    def _take_up(self, queries: Sequence[StreamingQuery], handed: Sequence[ApplicationQuery]) -> None:
        application = Application.around(
            self._spark,
            queries,
            self._objective,
            self._directory,
            uneven_partitions(self._config),
            self._hold.name,
            self.bounds,
            handed,
        )
        self._application = application
        application.sensors.sources.publish_as(self._config.kafka.publish_group)
        application.start()
        announce(self._directory, application, self._config, self._hold.identity)
        make_managers = manager_maker(self._config, application, self._hold, say)
        runs = [application.run_name(each.name) for each in application.pipelines]
        alarm = Alarm(lambda: self._hold.open_log(*runs), runs, say)
        self._keeper = LoopKeeper(lambda: Loop(make_managers, say), say, partial(alarm.ring, NO_MANAGER))
        self._keeper.start()

    def _let_go(self) -> None:
        if self._keeper is not None:
            self._keeper.stop()
            self._keeper = None
        if self._application is not None:
            self._application.stop(session=False)
            self._application = None


def attach(
    spark: SparkSession,
    objective: ObjectiveArgument = None,
    *,
    mode: Mode | None = None,
    config: str | Path | None = None,
    directory: str | Path | None = None,
    rows_per_trigger: tuple[int, int] | None = None,
    trigger: tuple[float | str, float | str] | None = None,
    queries: Mapping[str, Callable[..., Any]] = NO_QUERIES,
) -> Attachment:
    """Manage the streaming queries of this session, including queries that start later.

    Homeostat acts only in a mode that acts (`earn` or `regulate`). It changes the rows per trigger and the trigger
    interval only within the bounds that you give as a pair (minimum, maximum): `rows_per_trigger=(1_000, 50_000)`,
    `trigger=(1, "20 s")`. Without bounds, it does not change them. It restarts only the queries that you hand over:
    `queries={"words": build}` starts the query `words`, where `build(spark)` returns its writer without starting it.
    Settings come from `config`, or from homeostat.toml in the working directory. To stop managing the queries, call
    `stop()` on the result.
    """
    settings = settings_file.load(config, flags={"mode": mode})
    policy_of(settings, objective_of(settings, combine(objective)))
    home = Path(directory) if directory is not None else HOME / _file_name(str(spark.conf.get("spark.app.name")))
    attachment = Attachment(spark, settings, objective, home.resolve(), _bounds(rows_per_trigger, trigger))
    attachment.begin()
    try:
        attachment.hand_over(queries)
    except BaseException:
        attachment.stop()
        raise
    return attachment


def _bounds(
    rows: tuple[int, int] | None, trigger: tuple[float | str, float | str] | None
) -> dict[str, tuple[Value, Value]]:
    bounds: dict[str, tuple[Value, Value]] = {}
    if rows is not None:
        bounds[ROWS_PER_TRIGGER] = _pair("rows_per_trigger", rows, int, 1)
    if trigger is not None:
        bounds[TRIGGER_S] = _pair("trigger", trigger, _seconds, 0)
    return bounds


def _pair(name: str, values: Sequence[T], read: Callable[[T], Value], least: Value) -> tuple[Value, Value]:
    try:
        low, high = (read(value) for value in values)
    except (ValueError, TypeError) as error:
        fix = "give a pair (minimum, maximum)"
        raise ConfigError(f"cannot parse {name} = {values!r}", where="hs.attach", fix=fix) from error
    if not least <= low <= high < math.inf:
        raise ConfigError(
            f"{name} = ({low:g}, {high:g}) must be (minimum, maximum), both at least {least}", where="hs.attach"
        )
    return low, high


def _seconds(value: float | str) -> float:
    return units.parse_duration(value) if isinstance(value, str) else float(value)


def _file_name(application_name: str) -> str:
    """Commands look for applications directly below `.homeostat`, so a name must not become a path."""
    return application_name.replace("/", "-").lstrip(".") or "application"
