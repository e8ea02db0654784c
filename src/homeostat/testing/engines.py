"""What every engine must do, as checks that any implementation can be held to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from homeostat.core.configuration import Capabilities, Configuration, Knob, KnobSpec, Patch, Value, diff
from homeostat.core.engine import Engine
from homeostat.core.events import Apply, EngineChanged, Event, Observed, Operator, Receipt
from homeostat.core.observation import Observation

EngineFactory = Callable[[], Engine]
_COLUMNS = ("rows", "run_s", "rows_out", "pending_rows", "pressured_s", "finish_s", "worker")
_WATCHED_S = 120.0
_LIMIT_S = 600.0
_PIECES_S = (0.5, 3.7, 10.0, 41.0)


def check_describes_itself(factory: EngineFactory) -> None:
    """It says what it runs and what it can do; every knob has a value within its bounds."""
    engine = factory()
    told = engine.describe()
    assert told.topology.components, "there are no components"
    assert told.capabilities.knobs, "there is no knob"
    for knob, spec in told.capabilities.knobs.items():
        assert knob in told.configuration.values, f"{knob} has no value"
        assert spec.minimum <= told.configuration[knob] <= spec.maximum, f"{knob} is out of its bounds"
    for component in told.topology:
        assert component.scaled_by in told.capabilities.knobs, f"{component.name} cannot be scaled"
    engine.close()


def check_time(factory: EngineFactory) -> None:
    """Time passes as asked, and events come in the order in which they happened."""
    engine = factory()
    last_s = engine.now_s
    for until_s in np.cumsum(_PIECES_S * 3):
        events = engine.wait(float(until_s))
        assert engine.now_s >= until_s, f"it did not wait until {until_s}"
        times = [time_s(event) for event in events]
        assert times == sorted(times), "the events are not in order"
        assert all(last_s <= at_s <= engine.now_s for at_s in times), "an event is not of the time that was waited for"
        last_s = engine.now_s
    engine.close()


def check_observations(factory: EngineFactory) -> None:
    """Every observation is told once, its columns belong together, and it is about what is there."""
    engine = factory()
    told = engine.describe()
    observed = seen(engine.wait(_WATCHED_S))
    assert observed, f"nothing was observed within {_WATCHED_S:g} s"
    keys = [(observation.run, observation.batch) for observation in observed]
    assert keys == sorted(set(keys)), "the same observation came twice, or an older one later"
    for observation in observed:
        assert observation.span_s > 0
        assert {flow.source for flow in observation.flows} <= {c.name for c in told.topology.sources}
        assert set(observation.tasks) <= set(told.topology.names)
        workers = observation.workers
        assert len(workers.ids) == len(workers.hosts) == len(workers.slots) == len(workers.alive)
        for name, sample in observation.tasks.items():
            lengths = {len(getattr(sample, column)) for column in _COLUMNS}
            assert len(lengths) == 1, f"the columns of {name} differ in length"
            assert ((sample.worker >= -1) & (sample.worker < len(workers.ids))).all(), f"{name} runs on nobody"
    engine.close()


def check_waiting_in_pieces(factory: EngineFactory) -> None:
    """A wait that is cut in pieces gives the same events: how often one looks changes nothing."""
    whole, pieces = factory(), factory()
    command = _grow(whole, "a-1")
    at_once: list[Event] = []
    cut: list[Event] = []
    for until_s in (_WATCHED_S, 4 * _WATCHED_S):
        at_once += whole.wait(until_s)
        while pieces.now_s < until_s:
            number = len(cut) % len(_PIECES_S)
            cut += pieces.wait(min(until_s, pieces.now_s + _PIECES_S[number]))
        for engine in (whole, pieces):
            engine.apply(command)
    assert [_text(event) for event in cut] == [_text(event) for event in at_once]
    whole.close()
    pieces.close()


def check_applies(factory: EngineFactory) -> None:
    """A command takes effect and its receipt shows it. The same again, or by another name, changes nothing more."""
    engine = factory()
    engine.wait(_WATCHED_S)
    command = _grow(engine, "a-1")
    receipt = applied(engine, command)
    assert receipt.applied, receipt.detail
    assert _as_desired(receipt.configuration, command), "the receipt does not show what was asked for"
    assert engine.describe().configuration == receipt.configuration
    for again in (command, _same(engine, "a-2")):
        answer = applied(engine, again)
        assert answer.applied, "what already is was not acknowledged"
        assert answer.configuration == receipt.configuration == engine.describe().configuration
    engine.close()


def check_repeats_while_under_way(factory: EngineFactory) -> None:
    """A command that is given again before it took effect is carried out once."""
    once, twice = factory(), factory()
    for engine in (once, twice):
        engine.wait(_WATCHED_S)
    command = _grow(once, "a-1")
    for engine in (once, twice, twice):
        engine.apply(command)
    first, second = _receipts(once, "a-1"), _receipts(twice, "a-1")
    assert first, "it was not acknowledged"
    assert second, "it was not acknowledged when it was given twice"
    assert (first[0].at_s, first[0].configuration) == (second[0].at_s, second[0].configuration)
    assert once.describe().configuration == twice.describe().configuration
    once.close()
    twice.close()


def check_refuses(factory: EngineFactory) -> None:
    """What is out of bounds is refused with a reason, and nothing changes."""
    engine = factory()
    engine.wait(_WATCHED_S)
    before = engine.describe()
    for number, (knob, spec) in enumerate(sorted(before.capabilities.knobs.items())):
        for value in (spec.minimum - 1, spec.maximum + 1):
            command = _command(f"a-{number}-{value}", before, {knob: value}, engine.now_s)
            receipt = applied(engine, command)
            assert not receipt.applied, f"{knob} = {value} was not refused"
            assert receipt.detail, f"{knob} = {value} was refused without a reason"
            assert receipt.configuration == before.configuration == engine.describe().configuration
    engine.close()


def check_time_limit(factory: EngineFactory) -> None:
    """A command that cannot be done in time is answered at its time limit with what runs then."""
    engine = factory()
    engine.wait(_WATCHED_S)
    slow = _slow_knob(engine.describe().capabilities)
    if slow is None:
        return
    before = engine.describe()
    value = before.configuration[slow] + 1
    command = _command("a-1", before, {slow: value}, engine.now_s, limit_s=0.5)
    receipt = applied(engine, command)
    assert receipt.at_s <= engine.now_s
    assert receipt.applied == (receipt.configuration[slow] == value), "the receipt contradicts itself"
    assert receipt.applied or receipt.detail
    engine.close()


def check_replaces(factory: EngineFactory) -> None:
    """A worker that is to go is gone and stays gone; one that is not there is no work at all."""
    engine = factory()
    observed = seen(engine.wait(_WATCHED_S))
    told = engine.describe()
    if not told.capabilities.can_replace:
        return
    victim = observed[-1].workers.ids[0]
    count = len(observed[-1].workers.ids)
    for number, worker in enumerate((victim, victim, "nobody")):
        desired = engine.describe().configuration.patched(Patch(retire=frozenset({worker})))
        command = Apply(f"a-{number}", engine.now_s, desired, (), _LIMIT_S)
        asked_s = engine.now_s
        receipt = applied(engine, command)
        assert receipt.applied, receipt.detail
        assert worker in receipt.configuration.retired, "the receipt does not show the worker gone"
        assert number == 0 or receipt.at_s <= asked_s + 1e-6, "there was nothing to do, and it took time"
        workers = seen(engine.wait(engine.now_s + _WATCHED_S))[-1].workers.ids
        assert victim not in workers, "it is still there"
        assert len(workers) == count, "it was not replaced by exactly one"
    engine.close()


ENGINE_CHECKS: tuple[Callable[[EngineFactory], None], ...] = (
    check_describes_itself,
    check_time,
    check_observations,
    check_waiting_in_pieces,
    check_applies,
    check_repeats_while_under_way,
    check_refuses,
    check_time_limit,
    check_replaces,
)


def check_engine(factory: EngineFactory) -> None:
    """Hold an engine to its contract. `factory` gives a new one each time, which behaves like the one before."""
    for check in ENGINE_CHECKS:
        check(factory)


def time_s(event: Event) -> float:
    if isinstance(event, Observed):
        return event.observation.at_s
    assert not isinstance(event, Operator), "an engine is no person"
    return event.at_s


def seen(events: Iterable[Event]) -> list[Observation]:
    return [event.observation for event in events if isinstance(event, Observed)]


def applied(engine: Engine, command: Apply) -> Receipt:
    """Give a command and wait for its receipt."""
    engine.apply(command)
    limit_s = engine.now_s + command.time_limit_s + _WATCHED_S
    while True:
        for event in engine.wait(min(limit_s, engine.now_s + 5.0)):
            if isinstance(event, Receipt) and event.command_id == command.id:
                return event
        assert engine.now_s < limit_s, f"{command.id} was never acknowledged"


def _receipts(engine: Engine, id: str) -> list[Receipt]:
    events = engine.wait(engine.now_s + _LIMIT_S)
    return [event for event in events if isinstance(event, Receipt) and event.command_id == id]


def _grow(engine: Engine, id: str) -> Apply:
    """One more of everything that scales a component."""
    told = engine.describe()
    knobs = {component.scaled_by for component in told.topology}
    values = {knob: _more(told.configuration[knob], told.capabilities.knobs[knob]) for knob in sorted(knobs)}
    assert any(told.configuration[knob] != value for knob, value in values.items()), "nothing can grow"
    return _command(id, told, values, engine.now_s)


def _same(engine: Engine, id: str) -> Apply:
    told = engine.describe()
    return _command(id, told, {}, engine.now_s)


def _command(id: str, told: EngineChanged, values: dict[Knob, Value], now_s: float, limit_s: float = _LIMIT_S) -> Apply:
    desired = told.configuration.patched(Patch(values))
    return Apply(id, now_s, desired, diff(told.configuration, desired, told.capabilities), limit_s)


def _more(value: Value, spec: KnobSpec) -> Value:
    return spec.clip(value + 1)


def _slow_knob(capabilities: Capabilities) -> Knob | None:
    slow: Sequence[Knob] = [k for k, spec in sorted(capabilities.knobs.items()) if spec.apply_s > 1 and spec.cost > 0]
    return slow[0] if slow else None


def _as_desired(observed: Configuration, command: Apply) -> bool:
    return all(observed[knob] == value for knob, value in command.desired.values.items())


def _text(event: Event) -> str:
    """An event as text, arrays in full: NaN is not equal to itself."""
    with np.printoptions(threshold=np.iinfo(np.int64).max, floatmode="unique", nanstr="nan"):
        return repr(event)
