"""The manager is killed at every call around an action; a new one takes over and finds out what became of it.

The engine and the log survive. Whatever the moment, the action is in effect exactly once, or was never decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path
from typing import TypeVar

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB
from homeostat.core.engine import Engine
from homeostat.core.events import Apply, EngineChanged, Event, Observed, Receipt
from homeostat.core.record_json import JSON
from homeostat.core.records import Record
from homeostat.policies import registry
from homeostat.runtime.manager import Manager
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, FaultSpec, MicrobatchSpec, Scenario, WorkloadSpec
from homeostat.sim.simulation import build_engine
from homeostat.store.sqlite import SqliteStore

T = TypeVar("T")
RUN = "run"
END_S = 420.0


class KilledError(BaseException):
    """Not an Exception, so that nothing in the loop can catch it: the process is gone."""


@dataclass
class Doom:
    """Counts the calls to the world and kills at one of them, before or after it is done."""

    at: int = 0
    after: bool = False
    calls: list[str] = field(default_factory=list)
    commands: list[Apply] = field(default_factory=list)

    def __call__(self, name: str, do: Callable[[], T]) -> T:
        self.calls.append(name)
        mine = len(self.calls) == self.at
        if mine and not self.after:
            raise KilledError
        result = do()
        if mine:
            raise KilledError
        return result


class MortalStore(SqliteStore):
    def __init__(self, path: Path, doom: Doom, written: list[str]) -> None:
        super().__init__(path)
        self.doom, self.written = doom, written

    def append(self, run: str, records: Sequence[Record]) -> None:
        kinds = "+".join(sorted({record.kind for record in records}))
        self.doom(f"append {kinds}", lambda: SqliteStore.append(self, run, records))
        self.written += [record.id for record in records]

    def save_state(self, run: str, key: str, value: JSON) -> None:
        self.doom("save", lambda: SqliteStore.save_state(self, run, key, value))


class MortalEngine:
    def __init__(self, engine: Engine, doom: Doom) -> None:
        self.engine, self.doom = engine, doom

    @property
    def now_s(self) -> float:
        return self.engine.now_s

    def describe(self) -> EngineChanged:
        return self.engine.describe()

    def wait(self, until_s: float) -> Sequence[Event]:
        return self.doom("wait", lambda: self.engine.wait(until_s))

    def apply(self, command: Apply) -> None:
        self.doom.commands.append(command)
        self.doom("apply", lambda: self.engine.apply(command))

    def close(self) -> None:
        self.engine.close()


def scenario(engine: str, trouble: str) -> Scenario:
    """Too small from the start, or with a slow worker, and otherwise at peace: one action mends it."""
    dataflow = engine == "dataflow"
    load = 150.0 if trouble == "overload" else 100.0
    faults = (FaultSpec("slow-instance", 20.0, component="count" if dataflow else "", factor=4.0),)
    return Scenario(
        name=engine,
        title="",
        engine=DataflowSpec() if dataflow else MicrobatchSpec(executors=2 if trouble == "overload" else 4),
        duration_s=END_S,
        components=(
            ComponentSpec("lines", "source", parallelism=1 if dataflow else 12, rate_per_s=2000.0),
            ComponentSpec(
                "count",
                inputs=("lines",),
                parallelism=(2 if trouble == "overload" else 4) if dataflow else 12,
                rate_per_s=40.0 if dataflow else 70.0,
            ),
        ),
        workload=WorkloadSpec("constant", load),
        faults=faults if trouble == "slow" else (),
    )


CASES = [(engine, trouble) for engine in ("dataflow", "microbatch") for trouble in ("overload", "slow")]


class World:
    """An engine and a log that outlive every manager."""

    def __init__(self, engine: str, trouble: str, path: Path) -> None:
        self.engine = build_engine(scenario(engine, trouble))
        self.path = path
        self.start = self.engine.describe().configuration
        self.written: list[str] = []

    def manage(self, doom: Doom, until_s: float = END_S) -> bool:
        """Run a manager until then, or until it is killed; whether it lived."""
        old_ids = set(self.written)
        written: list[str] = []
        with closing(MortalStore(self.path, doom, written)) as store:
            engine = MortalEngine(self.engine, doom)
            manager = Manager(engine, registry.build("provisioning"), store, RUN)
            lived = False
            with suppress(KilledError):
                manager.start()
                while engine.now_s < until_s:
                    manager.advance(min(until_s, engine.now_s + 10.0))
                lived = True
        assert not old_ids & set(written), "an id was given away twice"
        self.written += written
        return lived

    def actions(self) -> list[Record]:
        with closing(SqliteStore(self.path, read_only=True)) as log:
            return log.records(RUN, kinds=("action",))

    def check(self, first: Apply, moment: str) -> None:
        """After a new manager has taken over: all is closed, and the action is in effect once or was never decided."""
        with closing(SqliteStore(self.path, read_only=True)) as log:
            assert log.open_intents(RUN) == [], f"an intent without a receipt: {moment}"
            assert log.unjudged(RUN) == [], f"an action that waits for a judgement for ever: {moment}"
            receipts = log.records(RUN, kinds=("receipt",))
        actions, runs = self.actions(), self.engine.describe().configuration
        assert len(actions) <= 1, moment
        assert [record.body["applied"] for record in receipts] == [True] * len(actions), moment
        assert runs == (first.desired if actions else self.start), moment
        values = [sample.values for sample in self.engine.truth]
        assert sum(now != last for last, now in pairwise(values)) <= 1, f"it changed more than once: {moment}"
        assert self.fresh_workers() == len(first.desired.retired) * len(actions), moment

    def fresh_workers(self) -> int:
        """How many workers there are that were neither there at the start nor added by growing."""
        events = self.engine.wait(self.engine.now_s + 60.0)
        ids = [event.observation.workers.ids for event in events if isinstance(event, Observed)][-1]
        desired = self.engine.describe().configuration.get(EXECUTORS_KNOB, math.inf)
        return sum(worker.endswith("#1") or _number(worker) >= desired for worker in ids)


def _number(worker: str) -> int:
    return int(worker.partition("#")[0].rpartition("-")[2])


def whole_life(engine: str, trouble: str, path: Path) -> tuple[list[str], Apply, float]:
    """A run that nobody kills: its calls, its first action, and when that took effect."""
    world, doom = World(engine, trouble, path), Doom()
    assert world.manage(doom)
    first = doom.commands[0]
    with closing(SqliteStore(path, read_only=True)) as log:
        receipt = log.records(RUN, kinds=("receipt",))[0]
    assert receipt.body["applied"]
    return doom.calls, first, receipt.at_s


def moments(calls: Sequence[str]) -> list[int]:
    """From just before the intent is written to just after the outcome; of many waits in a row the first and last."""
    intent = next(n for n, name in enumerate(calls, 1) if "action" in name)
    outcome = next(n for n, name in enumerate(calls, 1) if "outcome" in name)

    def idle(number: int) -> bool:
        return calls[number - 2 : number + 1] == ["wait"] * 3

    return [number for number in range(intent - 2, outcome + 2) if not idle(number)]


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "trouble"), CASES)
def test_killed_at_any_moment_around_an_action_it_is_in_effect_exactly_once(
    engine: str, trouble: str, tmp_path: Path
) -> None:
    calls, first, _ = whole_life(engine, trouble, tmp_path / "whole.sqlite")
    decided = []
    for at in moments(calls):
        for after in (False, True):
            moment = f"killed {'after' if after else 'before'} call {at}, {calls[at - 1]}"
            world = World(engine, trouble, tmp_path / f"{at}-{after}.sqlite")
            assert not world.manage(Doom(at, after)), moment
            assert world.manage(Doom(), until_s=0.0), moment
            world.check(first, moment)
            decided.append(bool(world.actions()))
    assert decided == sorted(decided), "from some moment on it was decided, and then always carried out"
    assert len(set(decided)) == 2


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "trouble"), [("dataflow", "overload"), ("microbatch", "slow")])
def test_killed_again_while_finding_out_it_is_still_in_effect_exactly_once(
    engine: str, trouble: str, tmp_path: Path
) -> None:
    calls, first, _ = whole_life(engine, trouble, tmp_path / "whole.sqlite")
    apply = calls.index("apply") + 1
    for after in (False, True):
        for again, again_after in product(range(1, 12), (False, True)):
            world = World(engine, trouble, tmp_path / f"{after}-{again}-{again_after}.sqlite")
            world.manage(Doom(apply, after))
            if world.manage(Doom(again, again_after), until_s=0.0):
                break
            assert world.manage(Doom(), until_s=0.0)
            world.check(first, f"killed at apply and then at call {again} of taking over")
        else:
            pytest.fail("taking over takes more calls than were tried")


def test_an_intent_whose_time_has_passed_is_given_up_and_not_carried_out_later(tmp_path: Path) -> None:
    calls, first, _ = whole_life("dataflow", "overload", tmp_path / "whole.sqlite")
    world = World("dataflow", "overload", tmp_path / "late.sqlite")
    world.manage(Doom(calls.index("apply") + 1))
    world.engine.wait(first.at_s + first.time_limit_s + 1.0)
    assert world.manage(Doom(), until_s=0.0)
    with closing(SqliteStore(world.path, read_only=True)) as log:
        receipt = log.records(RUN, kinds=("receipt",))[0]
        assert log.open_intents(RUN) == []
    assert receipt.text == "a-1 did not take effect: abandoned: its time limit passed during a restart"
    assert world.engine.describe().configuration == world.start


def test_an_action_that_nobody_watched_to_its_end_has_an_outcome_in_the_words_of_all_others(tmp_path: Path) -> None:
    calls, _, _ = whole_life("dataflow", "overload", tmp_path / "whole.sqlite")
    world = World("dataflow", "overload", tmp_path / "killed.sqlite")
    world.manage(Doom(calls.index("apply") + 1, after=True))
    assert world.manage(Doom(), until_s=0.0)
    with closing(SqliteStore(world.path, read_only=True)) as log:
        (outcome,) = log.records(RUN, kinds=("outcome",))
    assert outcome.text == "Could not tell whether a-1 helped: the manager restarted while a-1 was being judged"


@pytest.mark.parametrize("engine", ["dataflow", "microbatch"])
def test_a_replacement_that_is_replayed_when_its_target_is_gone_does_nothing(engine: str, tmp_path: Path) -> None:
    """The log says that a worker shall go; it is gone, but the receipt was lost together with the engine's memory."""
    _, first, _ = whole_life(engine, "slow", tmp_path / "whole.sqlite")
    assert first.desired.retired
    world = World(engine, "slow", tmp_path / "replayed.sqlite")
    victim = next(iter(first.desired.retired))
    world.engine.wait(first.at_s)
    world.engine.apply(replace(first, id="by somebody else"))
    world.engine.wait(first.at_s + 60.0)
    before = world.engine.describe().configuration
    world.engine.apply(replace(first, id="a-1"))
    events = world.engine.wait(world.engine.now_s + 30.0)
    receipt = next(event for event in events if isinstance(event, Receipt))
    assert receipt.applied
    assert receipt.configuration == before == world.engine.describe().configuration
    assert victim in before.retired
    assert world.fresh_workers() == 1, "not replaced a second time"


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "trouble"), CASES)
def test_the_next_manager_goes_on_regulating(engine: str, trouble: str, tmp_path: Path) -> None:
    """Killed before it decided anything, the application is mended all the same."""
    world = World(engine, trouble, tmp_path / "log.sqlite")
    assert not world.manage(Doom(at=5))
    assert world.manage(Doom())
    assert len(world.actions()) >= 1
    assert world.engine.truth[-1].healthy
