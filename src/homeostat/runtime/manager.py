"""The control loop of one query: wait for events, decide, log, act. The decisions are made in `core`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from homeostat.core.configuration import Configuration, diff
from homeostat.core.cycle import Trace, step
from homeostat.core.engine import Engine
from homeostat.core.errors import UnreadableError
from homeostat.core.events import Apply, Command, Event, Failure, Notify, Operator, Receipt
from homeostat.core.loop_state import Mode, State
from homeostat.core.objective import Objective
from homeostat.core.policy_definition import Policy
from homeostat.core.records import Record
from homeostat.core.traffic import Traffic
from homeostat.runtime.orders import Orders
from homeostat.runtime.reconcile import Intent, reconcile
from homeostat.runtime.saved_state import Restored, restore_state, state_json
from homeostat.runtime.state_from_log import judged_in_log, numbers_in_log, pause_in_log
from homeostat.runtime.waiting_events import WaitingEvents
from homeostat.store.protocol import SET_ASIDE, Store

# The key under which the manager saves the part of the state that survives a restart.
LOOP = "loop"
Decision = tuple[State, tuple[Command, ...], Trace]


class Manager:
    """Runs one policy on one engine.

    The store holds the intent before an action is applied, and the receipt afterwards. After a crash, `start` finds the
    actions that were left open.
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        store: Store,
        run: str,
        *,
        objective: Objective | None = None,
        mode: Mode = "regulate",
        traffic: Traffic | None = None,
        on_step: Callable[[Trace, State], None] | None = None,
        on_alert: Callable[[Notify], None] | None = None,
    ) -> None:
        self.engine, self.policy, self.store, self.run = engine, policy, store, run
        self.state = State(mode=mode, objective=objective or Objective(), traffic=traffic or Traffic())
        self._on_step, self._on_alert = on_step, on_alert
        self._waiting = WaitingEvents()
        self._early: list[Event] = []
        self._orders = Orders(store, run)

    def start(self) -> None:
        """Continue where an earlier process stopped."""
        failures = self._restore()
        self._orders.start()
        for id in reconcile(self.store, self.run, self.engine, self._reapply):
            failures.append(self._own_failure(f"the record of action {id} cannot be read; the action was abandoned"))
        early, self._early = self._early, []
        self.think([self.engine.describe(), *early, *failures])

    def _restore(self) -> list[Event]:
        """Restore the saved state. Parts that cannot be read are kept aside, and rebuilt from the records if
        possible.
        """
        restored = self._saved_state()
        self.state = restored.state
        if "numbers" in restored.lost:
            self.state = replace(self.state, numbers=numbers_in_log(self.store, self.run))
        if "paused" in restored.lost:
            self.state = replace(self.state, paused=pause_in_log(self.store, self.run))
        if not self.state.judged:
            self.state = replace(self.state, judged=judged_in_log(self.store, self.run))
        if not restored.problems:
            return []
        self.store.set_aside(self.run, LOOP)
        self.store.save_state(self.run, LOOP, state_json(self.state))
        what = "; ".join(restored.problems)
        return [self._own_failure(f"the saved state cannot be read: {what}; it is kept as {LOOP}{SET_ASIDE}")]

    def _saved_state(self) -> Restored:
        try:
            value = self.store.load_state(self.run, LOOP)
        except UnreadableError as error:
            return Restored(self.state, (error.what,), frozenset({"numbers", "paused"}))
        if value is None:  # a new run, or one whose saved state was lost
            return Restored(self.state, lost=frozenset({"numbers", "paused"}))
        return restore_state(self.state, value)

    def _own_failure(self, what: str) -> Event:
        return Failure("the log", what, self.engine.now_s, alert=True)

    def advance(self, until_s: float) -> Trace:
        """Wait for events of the engine and commands of the operator, then decide."""
        self._waiting.add(self.engine.wait(until_s))
        return self.think((), orders=self._orders.new(self.engine.now_s))

    def think(self, events: Sequence[Event], *, orders: Sequence[Operator] = ()) -> Trace:
        """Decide on these events, and on earlier ones that were not processed because of an error.

        If the log cannot be written, nothing has happened: the state is as before, the events wait for the next call,
        and the orders are read again.
        """
        self._waiting.add(events)
        try:
            state, commands, trace = self._decision(orders)
            self._write(state, trace.records)
        except Exception:
            self._waiting.wait_on()
            raise
        self.state = state
        self._waiting.clear()
        self._orders.confirm()
        failures = [failure for command in commands for failure in self._carry_out(command)]
        if failures:
            self.think(failures)
        if self._on_step is not None:
            self._on_step(trace, self.state)
        return trace

    def _decision(self, orders: Sequence[Operator]) -> Decision:
        now_s = self.engine.now_s
        events = [*self._waiting.all(now_s), *orders]
        try:
            return step(self.policy, self.state, events, now_s)
        except Exception as error:
            events = self._sound_events(events, error)
            return step(self.policy, self.state, events, now_s)

    def _sound_events(self, events: Sequence[Event], error: Exception) -> list[Event]:
        """The events without those that make a step fail, so that one bad event does not block all later ones."""
        sound = [event for event in events if self._can_take(event)]
        if len(sound) == len(events):  # they fail only together
            sound = [event for event in events if isinstance(event, Receipt)]
        what = f"{len(events) - len(sound)} events could not be processed: {type(error).__name__}: {error}"
        return [*sound, Failure("the loop", what, self.engine.now_s)]

    def _can_take(self, event: Event) -> bool:
        try:
            step(self.policy, self.state, [event], self.engine.now_s)
        except Exception:
            return False
        return True

    def _write(self, state: State, records: Sequence[Record]) -> None:
        # Save the id counters first: a crash in between may skip ids but never assigns one twice.
        before = self.state
        saved_before = (before.numbers, before.memory, before.trust, before.judged)
        if saved_before != (state.numbers, state.memory, state.trust, state.judged):
            self.store.save_state(self.run, LOOP, state_json(state))
        if records:
            self.store.append(self.run, records)

    def _carry_out(self, command: Command) -> list[Event]:
        """Return what failed instead of raising: the job must not suffer from a failure of Homeostat."""
        where = "actuator" if isinstance(command, Apply) else "the notifier"
        try:
            if isinstance(command, Apply):
                self.engine.apply(command)
            elif self._on_alert is not None:
                self._on_alert(command)
        except Exception as error:
            now_s = self.engine.now_s
            failure = Failure(where, f"{type(error).__name__}: {error}", now_s)
            if not isinstance(command, Apply):
                return [failure]
            return [failure, Receipt(command.id, now_s, self._configuration(), False, str(error))]
        return []

    def _configuration(self) -> Configuration:
        try:
            return self.engine.describe().configuration
        except Exception:
            return self.state.observed

    def _reapply(self, intent: Intent) -> Receipt:
        """Apply an open intent again and wait for the effect. Applying it twice is harmless."""
        description = self.engine.describe()
        desired = Configuration(intent.desired.values, description.configuration.retired | intent.desired.retired)
        steps = diff(description.configuration, desired, description.capabilities)
        now_s = self.engine.now_s
        self.engine.apply(Apply(intent.id, intent.at_s, desired, steps, intent.time_limit_s))
        limit_s = now_s + intent.time_limit_s
        while self.engine.now_s < limit_s:
            for event in self.engine.wait(min(limit_s, self.engine.now_s + 10.0)):
                if isinstance(event, Receipt) and event.command_id == intent.id:
                    return event
                self._early.append(event)
        return Receipt(
            intent.id, limit_s, self.engine.describe().configuration, False, "no effect within the time limit"
        )
