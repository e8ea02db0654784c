"""The newest model of a run is in its log, written at most once a minute and never while a change is under way."""

from __future__ import annotations

from homeostat.core.cycle import Trace
from homeostat.core.loop_state import State
from homeostat.core.record_json import JSON
from homeostat.log_views.stored_model import from_store
from homeostat.log_views.watched_model import WATCHING
from homeostat.models.model_json import MODEL_KEY
from homeostat.runtime.model_keeper import EVERY_S, ModelKeeper
from homeostat.sim.simulation import SimulatedEngine, simulate
from homeostat.store.in_memory import MemoryStore
from support.models import scenario


class CountingStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def save_state(self, run: str, key: str, value: JSON) -> None:
        self.written.append(key)
        super().save_state(run, key, value)


def test_a_model_is_written_at_most_once_a_minute() -> None:
    store, steps = CountingStore(), 0
    keeper = ModelKeeper(store, "run")

    def keep(_trace: Trace, state: State, engine: SimulatedEngine) -> None:
        nonlocal steps
        steps += 1
        keeper.look(WATCHING, state, engine.now_s)

    simulate(scenario(), WATCHING, mode="observe", on_step=keep)
    written = store.written.count(MODEL_KEY)
    assert 1 <= written <= scenario().duration_s / EVERY_S + 1
    assert written < steps
    assert from_store(store, "run", "log").topology.names == ("lines", "count")


def test_nothing_is_written_before_anything_was_observed() -> None:
    store = CountingStore()
    ModelKeeper(store, "run").look(WATCHING, State(mode="observe"), 0.0)
    assert store.written == []
