"""What each kind of event does to the state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from homeostat.core import sentences
from homeostat.core.actions import REVERT
from homeostat.core.batch_intervals import LATE_INTERVALS
from homeostat.core.configuration import EXECUTORS, SPREAD, Configuration
from homeostat.core.digest import clean, digest
from homeostat.core.earlier import Earlier
from homeostat.core.effects import Effects
from homeostat.core.events import EngineChanged, Event, Failure, Observed, Operator, Receipt, SourceSeen, UnderWay
from homeostat.core.grown_meanwhile import only_adds_executors, with_present_slots
from homeostat.core.history import as_history
from homeostat.core.loop_state import (
    HISTORY_KEPT,
    LATEST_KEPT,
    RUNS_KEPT,
    WINDOW_KEPT,
    WINDOW_LEAST,
    WINDOW_TASKS_KEPT,
    ActiveAction,
    State,
    acted,
)
from homeostat.core.observation import Observation, WorkerSample
from homeostat.core.operator_commands import obey
from homeostat.core.policy_definition import Policy
from homeostat.core.records import EngineContent, ReceiptContent
from homeostat.core.topology import Topology

BETWEEN_EPOCHS = -1
# The title of an alert about Homeostat itself.
OWN_FAILURE = "homeostat-failure"
# A shorter observation is discarded, because rates over it would be meaningless. A choice.
_SHORTEST_S = 1e-6
# Clocks are compared with this tolerance, far below any batch.
_SAME_MOMENT_S = 1e-6


def receive(policy: Policy, state: State, event: Event, effects: Effects) -> State:
    match event:
        case Observed(observation):
            return _observe(policy, state, observation, effects)
        case UnderWay():
            return replace(state, under_way=event) if event.batch > state.last_batches.get(event.run, -1) else state
        case SourceSeen(sample):
            return replace(state, sources={**state.sources, sample.name: sample})
        case Receipt():
            return _receipt(state, event, effects)
        case EngineChanged():
            return _engine(state, event, effects)
        case Operator():
            return obey(policy, state, event, effects)
        case Failure(where, error, harmless=harmless):
            id = effects.failure(where, error, harmless=harmless)
            if event.alert:
                effects.alert(OWN_FAILURE, "", sentences.own_failure_sentence(where, error), [id])
            return state


def _observe(policy: Policy, state: State, observation: Observation, effects: Effects) -> State:
    if observation.batch <= state.last_batches.get(observation.run, -1):
        return state
    if not (math.isfinite(observation.at_s) and _SHORTEST_S <= observation.span_s < math.inf):
        times = f"ended at {observation.at_s} after {observation.span_s} s"
        effects.failure("a sensor", f"batch {observation.batch} {times}")
        return state
    observation = _of_components(state.topology, clean(observation))
    changing = any(action.applied_s is None for action in state.active)
    began_s = observation.at_s - observation.span_s
    is_older = began_s < state.epoch_since_s - _SAME_MOMENT_S
    saw_growth = is_older and state.grown and not changing and observation.intervals >= LATE_INTERVALS
    if saw_growth:
        observation = with_present_slots(observation)
    since = [d for d in state.history[-policy.warm_up_observations - 1 :] if d.at_s > state.epoch_since_s]
    # Processes are cold in the first batch with rows, however many empty batches came before it.
    first = observation.run not in state.warm and any(math.isfinite(flow.seconds) for flow in observation.flows)
    warming = first or (state.epoch > 1 and len(since) < policy.warm_up_observations)
    between = changing or ((is_older or warming) and not saw_growth)
    before = state.window[-1] if state.window and state.window[-1].run == observation.run else None
    entry = digest(observation, BETWEEN_EPOCHS if between else state.epoch, before)
    workers = observation.workers
    disturbance = _disturbance(state, workers, between)
    window = state.window
    if not (between and policy.fresh_window):
        window = _bounded((*state.window, observation)[-WINDOW_KEPT:])
    has_ended = state.under_way is not None and state.under_way.run == observation.run
    last_batches = _newest_runs(state.last_batches, observation)
    empty = all(flow.rows == 0 for flow in observation.flows)
    return replace(
        state,
        last_batches=last_batches,
        warm=state.warm if empty else (state.warm | {observation.run}) & last_batches.keys(),
        under_way=None if has_ended else state.under_way,
        window=window,
        latest=_bounded((*state.latest, observation)[-LATEST_KEPT:]),
        earlier=state.earlier if between else state.earlier.after(observation),
        history=as_history(state.history).after(entry, HISTORY_KEPT),
        traffic=state.traffic.after(entry.at_s, entry.span_s, entry.arrival_per_s, entry.arrivals_per_s),
        fresh=state.fresh or not (between and policy.fresh_window),
        hosts=frozenset(workers.hosts) or state.hosts,
        active=tuple(
            replace(a, disturbed=a.disturbed or disturbance) if disturbance and a.applied_s is not None else a
            for a in state.active
        ),
    )


def _disturbance(state: State, workers: WorkerSample, between: bool) -> str:
    """How the workers changed without an action, so that no action can be judged; empty if they did not."""
    ids_before = state.window[-1].workers.ids if state.window else ()
    if workers.ids and ids_before and workers.ids != ids_before and not between:
        return "the workers changed without a command"
    if workers.ids and state.window and workers.alive.size and not bool(workers.alive.all()):
        return "a worker was lost"
    return ""


def _of_components(topology: Topology, observation: Observation) -> Observation:
    """Without components that the engine has not described, about which no plug-in can decide anything."""
    if not topology.components or all(name in topology for name in observation.tasks):
        return observation
    tasks = {name: sample for name, sample in observation.tasks.items() if name in topology}
    return replace(observation, tasks=tasks)


def _bounded(window: tuple[Observation, ...]) -> tuple[Observation, ...]:
    """The newest observations, as many as their tasks leave room for."""
    tasks = 0
    for count, observation in enumerate(reversed(window), 1):
        tasks += observation.task_count
        if tasks > WINDOW_TASKS_KEPT and count >= WINDOW_LEAST:
            return window[-count:]
    return window


def _newest_runs(before: Mapping[str, int], observation: Observation) -> dict[str, int]:
    """The last batch of each run, without the oldest runs: a query that restarts often has a new one each time."""
    last_batches = {run: batch for run, batch in before.items() if run != observation.run}
    last_batches[observation.run] = observation.batch
    return dict(islice(last_batches.items(), max(0, len(last_batches) - RUNS_KEPT), None))


def _receipt(state: State, receipt: Receipt, effects: Effects) -> State:
    mine = next((a for a in state.active if a.command.id == receipt.command_id), None)
    if mine is None or mine.applied_s is not None:
        # A late or repeated answer matters only if the engine now runs something else.
        changed = receipt.configuration != state.observed
        return _now_runs(state, receipt.configuration, receipt.at_s) if changed else state
    observed = receipt.configuration.as_json()
    effects.write(
        ReceiptContent(receipt.command_id, receipt.applied, receipt.detail, observed),
        sentences.receipt_sentence(receipt.command_id, receipt.applied, receipt.detail),
        component=mine.proposal.component,
        because=[receipt.command_id],
    )
    if receipt.warning:
        wish = mine.proposal
        effects.alert(wish.cause, wish.component, receipt.warning, [receipt.command_id])
    others = tuple(
        replace(a, disturbed=a.disturbed or f"{receipt.command_id} was applied meanwhile")
        for a in state.active
        if a is not mine
    )
    is_judged = receipt.applied and mine.proposal.kind != REVERT and mine.proposal.prediction is not None
    active = (*others, replace(mine, applied_s=receipt.at_s)) if is_judged else others
    # Other settings change what a row costs. The number of executors does not.
    same_costs = all(knob.kind == EXECUTORS for knob in mine.proposal.patch.values)
    state = replace(
        state,
        earlier=state.earlier if same_costs or not receipt.applied else Earlier(),
        active=active,
        last=mine if receipt.applied else state.last,
    )
    state = acted(state, mine, receipt.at_s) if receipt.applied else state
    state = _now_runs(state, receipt.configuration, receipt.at_s)
    return replace(state, grown=receipt.applied and only_adds_executors(mine.proposal.patch))


def _now_runs(state: State, configuration: Configuration, at_s: float) -> State:
    """Begin a new epoch: earlier measurements say nothing about this configuration."""
    desired = configuration
    for action in state.active:
        if action.applied_s is None:
            desired = desired.patched(action.proposal.patch)
    return replace(
        state,
        observed=configuration,
        desired=desired,
        epoch=state.epoch + 1,
        epoch_since_s=at_s,
        window=(),
        fresh=False,
        grown=False,
    )


def _engine(state: State, event: EngineChanged, effects: Effects) -> State:
    values = event.configuration.as_json()
    effects.write(EngineContent(values, event.reason), sentences.engine_sentence(values.items(), event.reason))
    same = event.configuration == state.observed
    earlier = state.earlier if event.topology == state.topology else Earlier()
    state = _now_runs(state, event.configuration, event.at_s)
    return replace(
        state,
        topology=event.topology,
        earlier=earlier,
        capabilities=event.capabilities,
        active=tuple(_mark_disturbed(action, event, same) for action in state.active),
    )


def _mark_disturbed(action: ActiveAction, event: EngineChanged, same_configuration: bool) -> ActiveAction:
    """Mark an action as disturbed, unless the engine changed because of it: spreading rows adds a stage to the plan."""
    spreads = any(knob.kind == SPREAD for knob in action.proposal.patch.values)
    if spreads and same_configuration:
        return action
    return replace(action, disturbed=action.disturbed or f"the engine changed: {event.reason}")
