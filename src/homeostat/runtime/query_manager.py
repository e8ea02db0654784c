"""Builds the manager of one query: its policy, its objective, and what it writes to the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from homeostat import settings_file
from homeostat.core.errors import ConfigError
from homeostat.core.events import Failure, Notify
from homeostat.core.objective import Objective
from homeostat.core.record_json import JSON
from homeostat.core.records import BatchContent, Record, with_content
from homeostat.core.traffic import KEPT, MINUTE_S, Traffic, traffic_of
from homeostat.models.partition_sizes import UnevenPartitions
from homeostat.policies import registry
from homeostat.runtime.diary import Diary
from homeostat.runtime.hold import ApplicationHold
from homeostat.runtime.kept_log import KeptLog, damaged_at_start
from homeostat.runtime.manager import Manager
from homeostat.runtime.model_keeper import ModelKeeper
from homeostat.settings import read
from homeostat.settings_file import Config
from homeostat.spark.application import Application
from homeostat.spark.clocks import STEADY
from homeostat.spark.engine import QueryEngine
from homeostat.spark.pipeline import Pipeline
from homeostat.store.retention import Housekeeper, Retention
from homeostat.store.rollups import history

if TYPE_CHECKING:
    from homeostat.core.cycle import Trace
    from homeostat.core.loop_state import State
    from homeostat.core.policy_definition import Policy
    from homeostat.store.protocol import Store

_MOST_BATCHES = 200_000


class FencedStore:
    """A log that rejects writes once another manager has taken over. Two writers would assign the same ids.

    The log holds the time of day, for people and other processes. The manager runs on the steady clock.
    """

    def __init__(self, store: Store, engine: QueryEngine) -> None:
        self._store, self._engine = store, engine

    def append(self, run: str, records: Sequence[Record]) -> None:
        self._engine.require_ours()
        self._store.append(run, [_at(record, STEADY.to_time_of_day(record.at_s)) for record in records])

    def records(self, run: str, **options: Any) -> list[Record]:
        return [_at(record, STEADY.from_time_of_day(record.at_s)) for record in self._store.records(run, **options)]

    def save_state(self, run: str, key: str, value: JSON) -> None:
        self._engine.require_ours()
        self._store.save_state(run, key, value)

    def set_aside(self, run: str, key: str) -> None:
        self._engine.require_ours()
        self._store.set_aside(run, key)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _at(record: Record, at_s: float) -> Record:
    return record if at_s == record.at_s else replace(record, at_s=at_s)


def objective_of(config: Config, of_application: Objective) -> Objective:
    """The objective in homeostat.toml, or else the one that the application states."""
    return config.objective if config.objective != Objective() else of_application


def policy_of(config: Config, objective: Objective) -> Policy:
    """The policy for this objective; a ConfigError if the policy cannot pursue it or cannot be built."""
    name, origin = policy_name(config, objective), config.values["policy"].origin
    for problem in settings_file.contradictions(name, objective):
        raise ConfigError(problem.what, where=origin, fix=problem.fix)
    try:
        return registry.build(name, config.sections)
    except ConfigError as error:
        raise ConfigError(error.what, where=error.where or origin, fix=error.fix) from error


def uneven_partitions(config: Config) -> UnevenPartitions:
    """The condition on which the sensors read the keys of a state. It has the same ratio as that of the detectors."""
    return UnevenPartitions(read(config.sections).sensitivity.ratio)


def manager(
    pipeline: Pipeline,
    config: Config,
    application: Application,
    store: Store,
    say: Callable[[str], None],
    keep_small: Callable[[], None] = lambda: None,
) -> Manager:
    """`keep_small` is called after every step, to do a little of the work that keeps the log small."""
    objective = objective_of(config, pipeline.objective)
    run = application.run_name(pipeline.name)
    engine = application.engine(pipeline.name)
    ours = cast("Store", FencedStore(store, engine))
    policy = policy_of(config, objective)
    diary, keeper = Diary(ours, run, policy), ModelKeeper(ours, run)

    def after_step(trace: Trace, state: State) -> None:
        diary.note(trace, state)
        keeper.look(policy, state, engine.now_s)
        keep_small()

    def alert(message: Notify) -> None:
        say(f"{message.title}: {message.message}")

    return Manager(
        engine,
        policy,
        ours,
        run,
        objective=objective,
        mode=config.mode,
        traffic=logged_traffic(ours, run),
        on_step=after_step,
        on_alert=alert,
    )


def manager_maker(
    config: Config, application: Application, hold: ApplicationHold, say: Callable[[str], None]
) -> Callable[[], Sequence[Manager]]:
    """Call the result in the loop's own thread: a connection to the store belongs to one thread."""
    runs = [application.run_name(pipeline.name) for pipeline in application.pipelines]

    def make() -> Sequence[Manager]:
        managers: list[Manager] = []
        early: list[Failure] = []

        def report(where: str, what: str) -> None:
            failure = Failure(where, what, time.time(), alert=True)
            if managers:
                cast(QueryEngine, managers[0].engine).put(failure)
            else:
                early.append(failure)

        if hold.damaged_log is not None:
            report("the log", damaged_at_start(hold.damaged_log))
        log = KeptLog(config.store, lambda store: hold.enrol(store, *runs), report)
        keep_small = Housekeeper(Retention(log, config.log), say).look
        managers += [manager(each, config, application, log, say, keep_small) for each in application.pipelines]
        for failure in early:
            cast(QueryEngine, managers[0].engine).put(failure)
        return managers

    return make


def policy_name(config: Config, objective: Objective) -> str:
    """The configured policy, or else one that covers the whole objective: `latency` also covers a throughput."""
    if config.values["policy"].origin != settings_file.DEFAULT:
        return config.policy
    if objective.latency_p95_s is not None or objective.lag_s is not None:
        return "latency"
    return "throughput" if objective.throughput_per_s is not None else config.policy


def logged_traffic(store: Store, run: str) -> Traffic:
    """The arrival history that earlier runs of the query left in the log."""
    batches = history(store, run, KEPT * MINUTE_S, _MOST_BATCHES)
    return traffic_of(
        (record.at_s, batch.span_s, batch.arrival_per_s, batch.arrivals_per_s)
        for record, batch in with_content(batches, BatchContent)
    )
