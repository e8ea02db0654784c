"""Clocks that are set, and clocks of other machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from homeostat.core.cycle import step
from homeostat.core.events import Event, Observed
from homeostat.core.loop_state import State
from homeostat.core.records import ReceiptContent, Record
from homeostat.runtime import query_manager
from homeostat.runtime.query_manager import FencedStore
from homeostat.spark.clocks import DriverClock, SteadyClock
from homeostat.spark.engine import QueryEngine
from homeostat.store.in_memory import MemoryStore
from homeostat.testing import observations
from support.growing_loop import policy

STEPS_S = (-3600.0, 3600.0)


class Machine:
    """Its monotonic clock, and by how much its time of day was set."""

    def __init__(self) -> None:
        self.monotonic_s, self.set_by_s = 500.0, 0.0
        self.clock = SteadyClock(self.time_of_day, lambda: self.monotonic_s)

    def time_of_day(self) -> float:
        return 1.8e9 + self.monotonic_s + self.set_by_s


@pytest.mark.parametrize("step_s", STEPS_S)
def test_a_steady_clock_does_not_notice_that_the_time_of_day_is_set(step_s: float) -> None:
    machine = Machine()
    before_s = machine.clock.now_s()
    assert before_s == machine.time_of_day()
    machine.set_by_s = step_s
    machine.monotonic_s += 10.0
    assert machine.clock.now_s() == before_s + 10.0
    assert machine.clock.to_time_of_day(machine.clock.now_s()) == machine.time_of_day()
    assert machine.clock.from_time_of_day(machine.time_of_day()) == machine.clock.now_s()


def test_small_corrections_of_the_time_of_day_change_no_moment() -> None:
    machine = Machine()
    machine.set_by_s = 0.4
    assert machine.clock.to_time_of_day(7.0) == machine.clock.from_time_of_day(7.0) == 7.0


@pytest.mark.parametrize("step_s", STEPS_S)
def test_silence_is_noticed_in_time_whatever_the_time_of_day(step_s: float) -> None:
    """Batches every ten seconds end. The clock is set, and a minute later there is an alert, not before."""
    machine, state = Machine(), State(mode="observe")
    for observation in observations(5, {}, span_s=10.0):
        machine.monotonic_s += 10.0
        at_s = machine.clock.now_s()
        events: list[Event] = [Observed(type(observation)(at_s, 10.0, observation.batch, observation.flows))]
        state, _, _ = step(policy(), state, events, at_s)
    machine.set_by_s = step_s
    alerts_s: list[float] = []
    for waited_s in range(1, 121):
        machine.monotonic_s += 1.0
        state, commands, _ = step(policy(), state, [], machine.clock.now_s())
        alerts_s += [float(waited_s) for _ in commands]
    assert alerts_s == [61.0]


@pytest.mark.parametrize("step_s", STEPS_S)
def test_the_log_has_the_time_of_day_and_orders_in_it_are_as_old_as_they_are(
    step_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, store = Machine(), MemoryStore()
    monkeypatch.setattr(query_manager, "STEADY", machine.clock)
    fenced = FencedStore(store, cast("QueryEngine", Fence()))
    machine.set_by_s = step_s
    fenced.append("run", [Record.of("c-1", machine.clock.now_s(), ReceiptContent("a-1", True, "", {}), "done")])
    assert at(store.records("run")) == [machine.time_of_day()]
    assert at(fenced.records("run")) == [machine.clock.now_s()]


def at(records: Sequence[Record]) -> list[float]:
    return [record.at_s for record in records]


class Fence:
    """In the place of an engine that may write."""

    def require_ours(self) -> None:
        return


@pytest.mark.parametrize("skew_s", [-7200.0, 7200.0])
def test_moments_of_a_driver_with_another_clock_are_translated(skew_s: float) -> None:
    now_s = [1_000.0]
    clock = DriverClock(lambda: now_s[0])
    clock.hear(now_s[0] - 3.0)
    assert clock.steady_s(990.0) == 990.0, "an answer takes a moment"
    clock.hear(now_s[0] + skew_s)
    assert clock.steady_s(990.0 + skew_s) == pytest.approx(990.0)
    clock.hear(now_s[0] + skew_s - 2.0)
    assert clock.steady_s(990.0 + skew_s) == pytest.approx(990.0)
    clock.hear(now_s[0])
    assert clock.steady_s(990.0) == 990.0
