"""One step of the loop: events in, commands out.

It has no clock, no I/O and no threads, so the same events always give the same commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from homeostat.core import judging, receiving, silence, unsettled
from homeostat.core.batch_intervals import telling
from homeostat.core.calibration import corrected
from homeostat.core.deciding import act
from homeostat.core.effects import Effects
from homeostat.core.events import Command, Event
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.loop_state import State
from homeostat.core.plugins import Runner, look
from homeostat.core.policy_definition import Policy
from homeostat.core.records import Record
from homeostat.core.view import View


class Trace(NamedTuple):
    """How the step decided: all new records for the log, and the reasons why it did not do more."""

    records: tuple[Record, ...]
    symptoms: tuple[Symptom, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    conditions: tuple[str, ...] = ()


def step(
    policy: Policy, state: State, events: Iterable[Event], now_s: float
) -> tuple[State, tuple[Command, ...], Trace]:
    effects = Effects(state.numbers, now_s, state.failing)
    for event in events:
        state = receiving.receive(policy, state, event, effects)
    state = silence.notice(state, effects)
    state = judging.expire(state, effects)
    view = look(policy, state, now_s)
    reason = _resting(policy, state, now_s)
    if reason:
        return _rest(policy, state, view, effects, reason)
    runner = Runner(effects, view.topology)
    symptoms = runner.run(policy.detectors, Symptom, lambda plug_in: plug_in.detect(view))
    symptoms, standing = effects.symptoms(state.symptoms, symptoms)
    diagnoses = runner.run(policy.diagnosers, Diagnosis, lambda plug_in: plug_in.diagnose(view, symptoms))
    diagnoses = [corrected(diagnosis, state.judged) for diagnosis in diagnoses]
    # The costliest cause comes first, here and wherever diagnoses are shown.
    diagnoses.sort(key=lambda diagnosis: -(diagnosis.evidence.recoverable_s or 0.0))
    diagnoses, standing_diagnoses = effects.diagnoses(state.diagnoses, diagnoses)
    state = replace(state, symptoms=standing, diagnoses=standing_diagnoses, fresh=False, last_cycle_s=now_s)
    state = judging.judge(policy, state, view, effects)
    proposals = runner.run(policy.resolvers, Proposal, lambda plug_in: plug_in.resolve(view, diagnoses))
    state, conditions = act(policy, state, view, proposals, effects)
    trace = Trace(effects.records, tuple(symptoms), tuple(diagnoses), tuple(proposals), conditions)
    return replace(state, numbers=effects.numbers, failing=frozenset(effects.failed)), effects.commands, trace


def _rest(
    policy: Policy, state: State, view: View, effects: Effects, reason: str
) -> tuple[State, tuple[Command, ...], Trace]:
    state, symptoms, diagnoses = unsettled.notice(policy, state, view, effects)
    state = judging.judge(policy, state, view, effects, looked=False)
    trace = Trace(effects.records, symptoms, diagnoses, conditions=(reason,))
    failing = state.failing | frozenset(effects.failed)
    return replace(state, numbers=effects.numbers, failing=failing), effects.commands, trace


def _resting(policy: Policy, state: State, now_s: float) -> str:
    """Return why there is no cycle now; empty if there is one."""
    if not state.fresh:
        return "no new observation"
    if now_s < state.last_cycle_s + policy.cadence_s:
        return "the next cycle is not due"
    latest = [digest for digest in state.history[-policy.least_observations :] if digest.epoch == state.epoch]
    if policy.fresh_window and not telling(latest, policy.least_observations):
        return f"{len(latest)} of {policy.least_observations} observations of this configuration"
    settled_s = max((a.applied_s for a in state.active if a.applied_s is not None), default=None)
    if settled_s is None:
        settled_s = max(state.last_action_s.values(), default=None)
    if not policy.fresh_window and settled_s is not None and now_s < settled_s + policy.settle_s:
        return f"settling for another {settled_s + policy.settle_s - now_s:.0f} s"
    return ""
