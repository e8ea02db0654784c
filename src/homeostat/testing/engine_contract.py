"""The contract of engines, as checks that you can run on any implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from homeostat.core.configuration import Capabilities, Configuration, Knob, KnobSpec, Patch, Value, diff
from homeostat.core.engine import Engine
from homeostat.core.events import Apply, EngineChanged, Event, Observed, Operator, Receipt, SourceSeen
from homeostat.core.observation import Observation

EngineFactory = Callable[[], Engine]
_COLUMNS = ("rows", "run_s", "rows_out", "pending_rows", "pressured_s", "finish_s", "worker")
_WATCHED_S = 120.0
_LIMIT_S = 600.0
_PIECES_S = (0.5, 3.7, 10.0, 41.0)


def check_describes_itself(factory: EngineFactory) -> None:
    """The engine describes what it runs and what can be changed. Every knob has a value within its bounds."""
    engine = factory()
    description = engine.describe()
    assert description.topology.components, "the engine has no components"
    assert description.capabilities.knobs, "the engine has no knob"
    for knob, spec in description.capabilities.knobs.items():
        assert knob in description.configuration.values, f"{knob} has no value"
        assert spec.minimum <= description.configuration[knob] <= spec.maximum, f"{knob} is out of its bounds"
    for component in description.topology:
        assert component.scaled_by in description.capabilities.knobs, f"{component.name} cannot be scaled"
    engine.close()


def check_time(factory: EngineFactory) -> None:
    """`wait` lets the requested time pass and returns events in the order in which they happened."""
    engine = factory()
    last_s = engine.now_s
    for until_s in np.cumsum(_PIECES_S * 3):
        events = engine.wait(float(until_s))
        assert engine.now_s >= until_s, f"it did not wait until {until_s}"
        times = [time_s(event) for event in events]
        assert times == sorted(times), "the events are not in order"
        assert all(last_s <= at_s <= engine.now_s for at_s in times), "an event happened outside the time of the wait"
        last_s = engine.now_s
    engine.close()


def check_observations(factory: EngineFactory) -> None:
    """Every observation is reported once, its columns have equal lengths, and it names only known components."""
    engine = factory()
    description = engine.describe()
    observations = observations_of(engine.wait(_WATCHED_S))
    assert observations, f"no observation within {_WATCHED_S:g} s"
    keys = [(observation.run, observation.batch) for observation in observations]
    assert keys == sorted(set(keys)), "an observation came twice or out of order"
    for observation in observations:
        assert observation.span_s > 0
        assert {flow.source for flow in observation.flows} <= {c.name for c in description.topology.sources}
        assert set(observation.tasks) <= set(description.topology.names)
        workers = observation.workers
        assert len(workers.ids) == len(workers.hosts) == len(workers.slots) == len(workers.alive)
        for name, sample in observation.tasks.items():
            lengths = {len(getattr(sample, column)) for column in _COLUMNS}
            assert len(lengths) == 1, f"the columns of {name} differ in length"
            assert ((sample.worker >= -1) & (sample.worker < len(workers.ids))).all(), (
                f"an instance of {name} runs on an unknown worker"
            )
    engine.close()


def check_waiting_in_pieces(factory: EngineFactory) -> None:
    """Many short waits return the same events as one long wait."""
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
    """A command takes effect and its receipt shows it. The same command again, under any id, changes nothing."""
    engine = factory()
    engine.wait(_WATCHED_S)
    command = _grow(engine, "a-1")
    receipt = apply_and_wait(engine, command)
    assert receipt.applied, receipt.detail
    assert _as_desired(receipt.configuration, command), "the receipt does not show the desired configuration"
    assert engine.describe().configuration == receipt.configuration
    for again in (command, _same(engine, "a-2")):
        answer = apply_and_wait(engine, again)
        assert answer.applied, "a command that changes nothing was not acknowledged"
        assert answer.configuration == receipt.configuration == engine.describe().configuration
    engine.close()


def check_repeats_while_under_way(factory: EngineFactory) -> None:
    """A command that is repeated before it took effect is carried out once."""
    once, twice = factory(), factory()
    for engine in (once, twice):
        engine.wait(_WATCHED_S)
    command = _grow(once, "a-1")
    for engine in (once, twice, twice):
        engine.apply(command)
    first, second = _receipts(once, "a-1"), _receipts(twice, "a-1")
    assert first, "the command was not acknowledged"
    assert second, "the repeated command was not acknowledged"
    assert (first[0].at_s, first[0].configuration) == (second[0].at_s, second[0].configuration)
    assert once.describe().configuration == twice.describe().configuration
    once.close()
    twice.close()


def check_refuses(factory: EngineFactory) -> None:
    """A value out of bounds is refused with a reason, and nothing changes."""
    engine = factory()
    engine.wait(_WATCHED_S)
    before = engine.describe()
    for number, (knob, spec) in enumerate(sorted(before.capabilities.knobs.items())):
        for value in (spec.minimum - 1, spec.maximum + 1):
            command = _command(f"a-{number}-{value}", before, {knob: value}, engine.now_s)
            receipt = apply_and_wait(engine, command)
            assert not receipt.applied, f"{knob} = {value} was not refused"
            assert receipt.detail, f"{knob} = {value} was refused without a reason"
            assert receipt.configuration == before.configuration == engine.describe().configuration
    engine.close()


def check_time_limit(factory: EngineFactory) -> None:
    """A command that cannot finish in time is answered at its time limit with the configuration of that moment."""
    engine = factory()
    engine.wait(_WATCHED_S)
    slow = _slow_knob(engine.describe().capabilities)
    if slow is None:
        return
    before = engine.describe()
    value = before.configuration[slow] + 1
    command = _command("a-1", before, {slow: value}, engine.now_s, limit_s=0.5)
    receipt = apply_and_wait(engine, command)
    assert receipt.at_s <= engine.now_s
    assert receipt.applied == (receipt.configuration[slow] == value), "the receipt contradicts itself"
    assert receipt.applied or receipt.detail
    engine.close()


def check_replaces(factory: EngineFactory) -> None:
    """A retired worker is replaced and does not come back. Retiring an unknown worker takes no time."""
    engine = factory()
    observations = observations_of(engine.wait(_WATCHED_S))
    description = engine.describe()
    if not description.capabilities.can_replace:
        return
    victim = observations[-1].workers.ids[0]
    count = len(observations[-1].workers.ids)
    for number, worker in enumerate((victim, victim, "nobody")):
        desired_configuration = engine.describe().configuration.patched(Patch(retire=frozenset({worker})))
        command = Apply(f"a-{number}", engine.now_s, desired_configuration, (), _LIMIT_S)
        asked_s = engine.now_s
        receipt = apply_and_wait(engine, command)
        assert receipt.applied, receipt.detail
        assert worker in receipt.configuration.retired, "the receipt does not list the worker as retired"
        assert number == 0 or receipt.at_s <= asked_s + 1e-6, "a command that changes nothing took time"
        workers = observations_of(engine.wait(engine.now_s + _WATCHED_S))[-1].workers.ids
        assert victim not in workers, "the retired worker is still there"
        assert len(workers) == count, "the worker was not replaced by exactly one other"
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
    """Check that an engine keeps its contract. `factory` returns a new engine each time, and all behave alike."""
    for check in ENGINE_CHECKS:
        check(factory)


def time_s(event: Event) -> float:
    if isinstance(event, Observed):
        return event.observation.at_s
    if isinstance(event, SourceSeen):
        return event.sample.at_s
    assert not isinstance(event, Operator), "an engine must not send operator commands"
    return event.at_s


def observations_of(events: Iterable[Event]) -> list[Observation]:
    return [event.observation for event in events if isinstance(event, Observed)]


def apply_and_wait(engine: Engine, command: Apply) -> Receipt:
    """Apply a command and wait for its receipt."""
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
    description = engine.describe()
    knobs = {component.scaled_by for component in description.topology}
    values = {
        knob: _more(description.configuration[knob], description.capabilities.knobs[knob]) for knob in sorted(knobs)
    }
    assert any(description.configuration[knob] != value for knob, value in values.items()), "no knob can grow"
    return _command(id, description, values, engine.now_s)


def _same(engine: Engine, id: str) -> Apply:
    description = engine.describe()
    return _command(id, description, {}, engine.now_s)


def _command(
    id: str, description: EngineChanged, values: dict[Knob, Value], now_s: float, limit_s: float = _LIMIT_S
) -> Apply:
    desired_configuration = description.configuration.patched(Patch(values))
    return Apply(
        id,
        now_s,
        desired_configuration,
        diff(description.configuration, desired_configuration, description.capabilities),
        limit_s,
    )


def _more(value: Value, spec: KnobSpec) -> Value:
    return spec.clip(value + 1)


def _slow_knob(capabilities: Capabilities) -> Knob | None:
    slow: Sequence[Knob] = [k for k, spec in sorted(capabilities.knobs.items()) if spec.apply_s > 1 and spec.cost > 0]
    return slow[0] if slow else None


def _as_desired(observed: Configuration, command: Apply) -> bool:
    return all(observed[knob] == value for knob, value in command.desired.values.items())


def _text(event: Event) -> str:
    """An event as text with whole arrays, because NaN does not equal itself."""
    with np.printoptions(threshold=np.iinfo(np.int64).max, floatmode="unique", nanstr="nan"):
        return repr(event)
