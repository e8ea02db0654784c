"""Every engine keeps the contract, and the checks catch engines that break it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

import pytest

from homeostat.core.engine import Engine
from homeostat.core.events import Apply, Event, Receipt
from homeostat.sim.dataflow.engine import Dataflow
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, MicrobatchSpec, Scenario, WorkloadSpec
from homeostat.sim.simulation import build_engine
from homeostat.testing import (
    ENGINE_CHECKS,
    check_engine,
)

SHAPE = (
    ComponentSpec("lines", "source", parallelism=2, rate_per_s=400.0),
    ComponentSpec("split", inputs=("lines",), parallelism=3, rate_per_s=100.0),
    ComponentSpec("count", inputs=("split",), parallelism=4, rate_per_s=100.0, keyed=True),
)


def scenario(engine: DataflowSpec | MicrobatchSpec) -> Scenario:
    return Scenario("contract", "a word count", engine, 3600.0, SHAPE, WorkloadSpec("constant", 100.0))


ENGINES: dict[str, Callable[[], Engine]] = {
    "dataflow": lambda: build_engine(scenario(DataflowSpec())),
    "microbatch": lambda: build_engine(scenario(MicrobatchSpec(executors=4))),
}


@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_keeps_its_contract(engine: str, check: Callable[[Callable[[], Engine]], None]) -> None:
    check(ENGINES[engine])


class Hasty(Dataflow):
    """Acknowledges at once what it has only begun."""

    def apply(self, command: Apply) -> None:
        super().apply(command)
        self._outbox.append(Receipt(command.id, self.now_s, command.desired))


class Jumbled(Dataflow):
    def wait(self, until_s: float) -> Sequence[Event]:
        return tuple(reversed(super().wait(until_s)))


class Silent(Dataflow):
    """Says nothing when it is asked for the same thing twice."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._done: set[str] = set()

    def apply(self, command: Apply) -> None:
        if command.id not in self._done:
            super().apply(command)
        self._done.add(command.id)


class Impatient(Dataflow):
    """Takes every repeated command for a new one."""

    numbers = count()

    def apply(self, command: Apply) -> None:
        super().apply(replace(command, id=f"{command.id}/{next(self.numbers)}"))


@pytest.mark.parametrize("broken", [Hasty, Jumbled, Silent, Impatient])
def test_an_engine_that_breaks_its_contract_is_found_out(broken: type[Dataflow]) -> None:
    with pytest.raises(AssertionError):
        check_engine(lambda: broken(scenario(DataflowSpec())))
