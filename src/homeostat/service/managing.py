"""A manager for one query of an application: its policy, its objective, and what it writes down."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from homeostat import config as configuration
from homeostat.config import Config
from homeostat.core.events import Notify
from homeostat.core.objective import Objective
from homeostat.policies import registry
from homeostat.service.manager import Manager
from homeostat.service.samples import Samples
from homeostat.spark.application import Application
from homeostat.spark.pipeline import Pipeline

if TYPE_CHECKING:
    from homeostat.core.cycle import Trace
    from homeostat.core.state import State
    from homeostat.store.protocol import Store


def manager(
    pipeline: Pipeline, config: Config, application: Application, store: Store, say: Callable[[str], None]
) -> Manager:
    objective = config.objective if config.objective != Objective() else pipeline.objective
    name = config.policy
    if config.values["policy"].origin == configuration.DEFAULT and objective.throughput_per_s is not None:
        name = "throughput"
    run = application.run_name(pipeline.name)
    samples = Samples()

    def after_step(trace: Trace, state: State) -> None:
        store.append(run, samples.new(state))

    def alert(told: Notify) -> None:
        say(f"{told.title}: {told.message}")

    return Manager(
        application.engine(pipeline.name),
        registry.build(name, config.sections),
        store,
        run,
        objective=objective,
        mode=config.mode,
        on_step=after_step,
        on_alert=alert,
    )
