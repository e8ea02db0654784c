"""A manager for one query of an application: its policy, its objective, and what it writes down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from homeostat import config as configuration
from homeostat.config import Config
from homeostat.core.events import Notify
from homeostat.core.findings import JSON, Record
from homeostat.core.objective import Objective
from homeostat.policies import registry
from homeostat.service.diary import Diary
from homeostat.service.manager import Manager
from homeostat.spark.application import Application
from homeostat.spark.engine import QueryEngine
from homeostat.spark.pipeline import Pipeline

if TYPE_CHECKING:
    from homeostat.store.protocol import Store


class FencedStore:
    """A log that a manager writes only as long as no other has taken over: two would give away the same ids."""

    def __init__(self, store: Store, engine: QueryEngine) -> None:
        self._store, self._engine = store, engine

    def append(self, run: str, records: Sequence[Record]) -> None:
        self._engine.require_ours()
        self._store.append(run, records)

    def save_state(self, run: str, key: str, value: JSON) -> None:
        self._engine.require_ours()
        self._store.save_state(run, key, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def manager(
    pipeline: Pipeline, config: Config, application: Application, store: Store, say: Callable[[str], None]
) -> Manager:
    objective = config.objective if config.objective != Objective() else pipeline.objective
    name = config.policy
    if config.values["policy"].origin == configuration.DEFAULT and objective.throughput_per_s is not None:
        name = "throughput"
    run = application.run_name(pipeline.name)
    engine = application.engine(pipeline.name)
    ours = cast("Store", FencedStore(store, engine))
    policy = registry.build(name, config.sections)

    def alert(told: Notify) -> None:
        say(f"{told.title}: {told.message}")

    return Manager(
        engine,
        policy,
        ours,
        run,
        objective=objective,
        mode=config.mode,
        on_step=Diary(ours, run, policy).note,
        on_alert=alert,
    )
