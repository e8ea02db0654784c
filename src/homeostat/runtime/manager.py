"""The control loop of one query: wait for events, decide, log, act. The decisions are made in `core`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from homeostat.core.configuration import Configuration, diff
from homeostat.core.cycle import Trace, step
from homeostat.core.engine import Engine
from homeostat.core.events import Apply, Event, Failure, Notify, Receipt
from homeostat.core.loop_state import Mode, State
from homeostat.core.objective import Objective
from homeostat.core.policy import Policy
from homeostat.core.records import Record
from homeostat.core.traffic import Traffic
from homeostat.runtime.orders import Orders
from homeostat.runtime.reconcile import Intent, reconcile
from homeostat.runtime.saved_state import restore_state, state_json
from homeostat.store.protocol import Store


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
        self._early: list[Event] = []
        self._orders = Orders(store, run)

    def start(self) -> None:
        """Continue where an earlier process stopped."""
        value = self.store.load_state(self.run, "loop")
        if value is not None:
            self.state = restore_state(self.state, value)
        self._orders.start()
        reconcile(self.store, self.run, self.engine, self._reapply)
        self.think([self.engine.describe(), *self._early])
        self._early = []

    def advance(self, until_s: float) -> Trace:
        """Wait for events of the engine and commands of the operator, then decide."""
        events = self.engine.wait(until_s)
        return self.think([*events, *self._orders.new(self.engine.now_s)])

    def think(self, events: Sequence[Event]) -> Trace:
        before = self.state
        self.state, commands, trace = step(self.policy, before, events, self.engine.now_s)
        self._write(before, trace.records)
        for command in commands:
            if isinstance(command, Apply):
                self._apply(command)
            else:
                self._tell(command)
        if self._on_step is not None:
            self._on_step(trace, self.state)
        return trace

    def _write(self, before: State, records: Sequence[Record]) -> None:
        # Save the id counters first: a crash in between may skip ids but never assigns one twice.
        if (before.numbers, before.memory, before.trust) != (self.state.numbers, self.state.memory, self.state.trust):
            self.store.save_state(self.run, "loop", state_json(self.state))
        if records:
            self.store.append(self.run, records)

    def _tell(self, alert: Notify) -> None:
        if self._on_alert is None:
            return
        try:
            self._on_alert(alert)
        except Exception as error:
            self.think([Failure("the notifier", f"{type(error).__name__}: {error}", self.engine.now_s)])

    def _apply(self, command: Apply) -> None:
        try:
            self.engine.apply(command)
        except Exception as error:
            # The job must not suffer from our failure: log it, and let the time limit close the action.
            failure = Failure("actuator", f"{type(error).__name__}: {error}", self.engine.now_s)
            failed_receipt = Receipt(
                command.id, self.engine.now_s, self.engine.describe().configuration, False, str(error)
            )
            self.think([failure, failed_receipt])

    def _reapply(self, intent: Intent) -> Receipt:
        """Apply an open intent again and wait for the effect. Applying it twice is harmless."""
        described = self.engine.describe()
        desired = Configuration(intent.desired.values, described.configuration.retired | intent.desired.retired)
        steps = diff(described.configuration, desired, described.capabilities)
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
