"""The engine of one query: a manager that was replaced hears nothing and may not act."""

from __future__ import annotations

import pytest

from homeostat.core.configuration import Capabilities, Configuration
from homeostat.core.events import Apply, EngineChanged, Failure
from homeostat.core.topology import Topology
from homeostat.spark.engine import FencedError, QueryEngine

COMMAND = Apply("a-1", 0.0, Configuration(), (), 60.0)
EVENT = Failure("sensor", "no answer", 1.0)


class Applied:
    """An application that notes the commands it gets."""

    def __init__(self) -> None:
        self.commands: list[tuple[str, Apply]] = []

    def describe(self, query: str, reason: str = "start") -> EngineChanged:
        return EngineChanged(Topology(()), Configuration(), Capabilities(), 0.0, reason)

    def apply(self, query: str, command: Apply) -> None:
        self.commands.append((query, command))


def test_commands_and_events_pass_while_the_engine_is_open() -> None:
    application = Applied()
    engine = QueryEngine(application, "words")
    engine.apply(COMMAND)
    engine.put(EVENT)
    assert application.commands == [("words", COMMAND)]
    assert list(engine.wait(engine.now_s)) == [EVENT]
    assert list(engine.wait(engine.now_s)) == []


def test_after_another_manager_took_over_nothing_passes() -> None:
    application = Applied()
    engine = QueryEngine(application, "words")
    engine.close()
    engine.put(EVENT)
    with pytest.raises(FencedError, match="words: another manager has taken over this query"):
        engine.apply(COMMAND)
    assert application.commands == []
    assert list(engine.wait(engine.now_s)) == []
