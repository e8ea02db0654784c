"""A recorded run is a test: the same events give the same commands, however they are cut into steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.cycle import step
from homeostat.core.engine import Engine
from homeostat.core.events import Apply, Command, EngineChanged, Event
from homeostat.core.loop_state import State
from homeostat.core.records import Record
from homeostat.policies import registry
from homeostat.runtime.manager import Manager
from homeostat.sim.scenario.spec import (
    ComponentSpec,
    DataflowSpec,
    FaultSpec,
    MicrobatchSpec,
    Noise,
    Scenario,
    WorkloadSpec,
)
from homeostat.sim.simulation import build_engine, simulate
from homeostat.store.in_memory import MemoryStore

POLICIES = ("provisioning", "provisioning.paper")
ENGINES = ("dataflow", "microbatch")
END_S = 700.0
Step = tuple[float, tuple[Event, ...]]


def scenario(engine: str) -> Scenario:
    """A load that rises, then a worker that is slow, then one that crashes."""
    dataflow = engine == "dataflow"
    return Scenario(
        name=f"busy-{engine}",
        title="",
        engine=DataflowSpec() if dataflow else MicrobatchSpec(executors=3),
        duration_s=END_S,
        components=(
            ComponentSpec("lines", "source", parallelism=1 if dataflow else 12, rate_per_s=1000.0),
            ComponentSpec("count", inputs=("lines",), parallelism=3 if dataflow else 12, rate_per_s=60.0),
        ),
        workload=WorkloadSpec("steps", steps=((0.0, 100.0), (100.0, 220.0)), noise=Noise(0.05, 0.5)),
        faults=(
            FaultSpec("slow-instance", 300.0, component="count" if dataflow else "", instance=1),
            FaultSpec("crash", 450.0, component="count" if dataflow else "", instance=0),
            FaultSpec("metric-gap", 580.0, 620.0, share=0.5),
        ),
        seed=7,
    )


class Recorder:
    """An engine that writes down every event with the time at which it was told."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.steps: list[Step] = []

    @property
    def now_s(self) -> float:
        return self.engine.now_s

    def describe(self) -> EngineChanged:
        return self.engine.describe()

    def wait(self, until_s: float) -> Sequence[Event]:
        events = tuple(self.engine.wait(until_s))
        self.steps.append((self.engine.now_s, events))
        return events

    def apply(self, command: Apply) -> None:
        self.engine.apply(command)

    def close(self) -> None:
        self.engine.close()


@cache
def recorded(policy: str, engine: str) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """The events of a run step by step, and all that the loop wrote into the log."""
    recorder = Recorder(build_engine(scenario(engine)))
    store = MemoryStore()
    manager = Manager(recorder, registry.build(policy), store, "run")
    first: Step = (0.0, (recorder.describe(),))
    manager.start()
    while recorder.now_s < END_S:
        manager.advance(recorder.now_s + 10.0)
    return (first, *recorder.steps), tuple(map(repr, store.records("run")))


def replayed(policy: str, steps: Sequence[Step]) -> tuple[tuple[Command, ...], tuple[Record, ...]]:
    state = State(mode="regulate")
    built = registry.build(policy)
    commands: list[Command] = []
    records: list[Record] = []
    for now_s, events in steps:
        state, given_now, trace = step(built, state, events, now_s)
        commands += given_now
        records += trace.records
    return tuple(commands), tuple(records)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_events_give_the_same_commands_and_the_same_log(policy: str, engine: str) -> None:
    steps, log = recorded(policy, engine)
    commands, records = replayed(policy, steps)
    assert any(isinstance(command, Apply) for command in commands)
    assert sorted(map(repr, records)) == sorted(log)
    assert replayed(policy, steps) == (commands, records)


def orders(commands: Sequence[Command]) -> list[tuple[object, ...]]:
    """What is commanded and when; the numbers of the records behind it depend on how often one looks."""
    return [(c.at_s, c.desired, c.steps) if isinstance(c, Apply) else (c.at_s, c.message) for c in commands]


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=2)
@given(random=st.randoms(use_true_random=False))
def test_how_the_events_of_a_moment_are_cut_into_steps_changes_nothing(
    policy: str, engine: str, random: Random
) -> None:
    steps, _ = recorded(policy, engine)
    cut: list[Step] = []
    for now_s, events in steps:
        pieces: list[list[Event]] = [[]]
        for event in events:
            if random.random() < 0.5:
                pieces.append([])
            pieces[-1].append(event)
        cut += [(now_s, tuple(piece)) for piece in pieces]
    assert orders(replayed(policy, cut)[0]) == orders(replayed(policy, steps)[0])


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("engine", ENGINES)
def test_thinking_when_nothing_happened_changes_nothing(policy: str, engine: str) -> None:
    """Between two measurements at most a wait comes to its end, so that the same is commanded a moment earlier."""
    steps, _ = recorded(policy, engine)
    again = [each for now_s, events in steps for each in ((now_s, events), (now_s, ()))]
    often = [each for now_s, events in steps for each in ((now_s, events), (now_s + 2.5, ()))]
    expected_orders = orders(replayed(policy, steps)[0])
    assert orders(replayed(policy, again)[0]) == expected_orders
    assert [order[1:] for order in orders(replayed(policy, often)[0])] == [order[1:] for order in expected_orders]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_seed_gives_the_same_run_to_the_bit(engine: str) -> None:
    first, second = (simulate(scenario(engine), registry.build("provisioning")) for _ in range(2))
    assert repr(first.truth) == repr(second.truth)
    assert first.as_json() == second.as_json()
    assert first.as_json()["steps"] > 0
