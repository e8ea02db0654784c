"""Runs the loop on made-up measurements: what would a policy do?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeostat.core.cycle import step
from homeostat.core.events import Apply, Command, Event, Observed, Receipt
from homeostat.core.loop_state import Mode, State
from homeostat.core.observation import Observation
from homeostat.core.policy_definition import Policy
from homeostat.core.records import Record
from homeostat.core.view import View
from homeostat.testing.builders import described


@dataclass(frozen=True, slots=True)
class Played:
    """The commands and records of the loop, and its last state."""

    commands: tuple[Command, ...]
    records: tuple[Record, ...]
    state: State

    @property
    def actions(self) -> tuple[Apply, ...]:
        return tuple(command for command in self.commands if isinstance(command, Apply))

    def texts(self, kind: str) -> list[str]:
        return [record.text for record in self.records if record.kind == kind]


def play(
    policy: Policy,
    engine: View,
    observed: Sequence[Observation],
    *,
    mode: Mode = "regulate",
    state: State | None = None,
    extra: Mapping[int, Sequence[Event]] | None = None,
    acknowledge: bool = True,
) -> Played:
    """Runs one step for each measurement, on the engine of a view.

    Every command takes effect at once and is acknowledged before the next measurement, unless `acknowledge` is False.
    `extra` holds more events by the number of the measurement. With a `state` the loop continues from there.
    """
    events: list[Event] = []
    if state is None:
        state = State(mode=mode, objective=engine.objective)
        events.append(described(engine))
    commands: list[Command] = []
    records: list[Record] = []
    for number, observation in enumerate(observed):
        events += [Observed(observation), *(extra or {}).get(number, ())]
        state, new_commands, trace = step(policy, state, events, observation.at_s)
        events = [_receipt(command) for command in new_commands if isinstance(command, Apply) and acknowledge]
        commands += new_commands
        records += trace.records
    return Played(tuple(commands), tuple(records), state)


def _receipt(command: Apply) -> Receipt:
    return Receipt(command.id, command.at_s, command.desired)
