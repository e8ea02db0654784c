"""Carries out the steps of a command on a simulated query and its executors."""

from __future__ import annotations

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    Capabilities,
    Configuration,
    Knob,
    Patch,
    Replace,
    Restart,
    Step,
    Value,
    diff,
)
from homeostat.sim.microbatch.agenda import Agenda
from homeostat.sim.microbatch.executors import Executors
from homeostat.sim.microbatch.query import Query


class StepRunner:
    """One step at a time. A step that takes too long is cancelled, and the state before it is restored."""

    def __init__(self, query: Query, executors: Executors, agenda: Agenda, capabilities: Capabilities) -> None:
        self._query, self._executors = query, executors
        self._agenda, self._capabilities = agenda, capabilities
        self._before = executors.target, query.values
        self._replacing = False

    @property
    def now_s(self) -> float:
        return self._agenda.now_s

    def configuration(self) -> Configuration:
        executors: dict[Knob, Value] = {EXECUTORS_KNOB: len(self._executors.up(self.now_s))}
        return Configuration({**executors, **self._query.values}, self._executors.retired_ids())

    def refusal(self, desired: Configuration) -> str:
        return self._capabilities.refusal(desired)

    def steps_to(self, desired: Configuration) -> tuple[Step, ...]:
        observed = self.configuration()
        if not self._executors.has_settled(self.now_s):
            # Executors may be about to come or go, even if the number that is up is already the desired one.
            observed = observed.patched(Patch({EXECUTORS_KNOB: 0}))
        return diff(observed, desired, self._capabilities)

    def begin(self, step: Step) -> None:
        self._before = self._executors.target, self._query.values
        if isinstance(step, Replace):
            present = {executor.id for executor in self._executors.members}
            self._replacing = bool(step.workers & present)
            self._executors.asked_to_go |= step.workers
        else:
            self._executors.target = int(step.values.get(EXECUTORS_KNOB, self._executors.target))
        if isinstance(step, Restart):
            self._query.restart(step)
        elif not isinstance(step, Replace):
            self._query.set_values(step.values)
        self._query.adjust_to_executors()

    def took_effect(self, step: Step) -> bool:
        if isinstance(step, Replace):
            return not self._replacing or self._executors.has_settled(self.now_s)
        if isinstance(step, Restart) and self._query.restart_under_way is not None:
            return False
        return EXECUTORS_KNOB not in step.values or self._executors.has_settled(self.now_s)

    def call_off(self, step: Step) -> str:
        """Undo a step whose time is up, as far as possible. Returns how far the step got."""
        (target_before, self._query.values), now_s = self._before, self.now_s
        if isinstance(step, Replace):
            self._executors.call_off(target_before, step.workers, now_s)
            how_far = "the new executors are not up, or the present batch still needs the old ones"
        elif isinstance(step, Restart) and self._query.restart_under_way is not None:
            self._query.restart_under_way = Restart({})
            self._executors.call_off(target_before, (), now_s)
            how_far = "the query is still stopped"
        else:
            desired, up = int(step.values[EXECUTORS_KNOB]), len(self._executors.up(now_s))
            target = max(target_before, min(up, desired)) if desired > target_before else target_before
            self._executors.call_off(target, (), now_s)
            how_far = f"{up} executors are up instead of {desired}"
        self._query.adjust_to_executors()
        return how_far
