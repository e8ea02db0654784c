"""What each kind of event does to the state."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.acting import apply, revert
from homeostat.core.book import Book
from homeostat.core.digest import clean, digest
from homeostat.core.events import Command, EngineChanged, Event, Failure, Observed, Operator, Receipt
from homeostat.core.findings import REVERT
from homeostat.core.observation import Observation
from homeostat.core.policy import Policy
from homeostat.core.state import HISTORY_KEPT, WINDOW_KEPT, State

BETWEEN_EPOCHS = -1


def absorb(policy: Policy, state: State, event: Event, book: Book, commands: list[Command]) -> State:
    match event:
        case Observed(observation):
            return _observed(policy, state, observation)
        case Receipt():
            return _receipt(state, event, book)
        case EngineChanged():
            return _engine(state, event, book)
        case Operator():
            return _operator(state, event, book, commands)
        case Failure(where, error, _):
            book.failure(where, error)
            return state


def _observed(policy: Policy, state: State, observation: Observation) -> State:
    if observation.batch <= state.seen.get(observation.run, -1):
        return state
    observation = clean(observation)
    changing = any(action.applied_s is None for action in state.active)
    began_s = observation.at_s - observation.span_s
    since = [d for d in state.history[-policy.warm_up_observations - 1 :] if d.at_s > state.epoch_since_s]
    warming = state.epoch > 1 and len(since) < policy.warm_up_observations
    between = changing or began_s < state.epoch_since_s - 1e-6 or warming
    before = state.window[-1] if state.window and state.window[-1].run == observation.run else None
    entry = digest(observation, BETWEEN_EPOCHS if between else state.epoch, before)
    workers = observation.workers
    disturbed = ""
    if workers.ids and state.window:
        known = state.window[-1].workers.ids
        if known and workers.ids != known and not between:
            disturbed = "the workers changed without our doing"
        elif workers.alive.size and not bool(workers.alive.all()):
            disturbed = "a worker was lost"
    window = state.window
    if not (between and policy.fresh_window):
        window = (*state.window, observation)[-WINDOW_KEPT:]
    return replace(
        state,
        seen={**state.seen, observation.run: observation.batch},
        window=window,
        history=(*state.history, entry)[-HISTORY_KEPT:],
        fresh=state.fresh or not (between and policy.fresh_window),
        hosts=frozenset(workers.hosts) or state.hosts,
        active=tuple(
            replace(a, disturbed=a.disturbed or disturbed) if disturbed and a.applied_s is not None else a
            for a in state.active
        ),
    )


def _receipt(state: State, receipt: Receipt, book: Book) -> State:
    mine = next((a for a in state.active if a.command.id == receipt.command_id), None)
    if mine is None or mine.applied_s is not None:
        return replace(state, observed=receipt.configuration)
    book.write(
        "receipt",
        f"{receipt.command_id} took effect"
        if receipt.applied
        else f"{receipt.command_id} did not take effect: {receipt.detail}",
        id=book.next_id("c"),
        component=mine.proposal.component,
        because=[receipt.command_id],
        body={
            "action": receipt.command_id,
            "applied": receipt.applied,
            "detail": receipt.detail,
            "observed": dict(receipt.configuration.as_json()),
        },
    )
    others = tuple(
        replace(a, disturbed=a.disturbed or f"{receipt.command_id} was applied meanwhile")
        for a in state.active
        if a is not mine
    )
    judged = receipt.applied and mine.proposal.kind != REVERT and mine.proposal.prediction is not None
    active = (*others, replace(mine, applied_s=receipt.at_s)) if judged else others
    return replace(
        state,
        observed=receipt.configuration,
        desired=receipt.configuration,
        epoch=state.epoch + 1,
        epoch_since_s=receipt.at_s,
        window=(),
        fresh=False,
        active=active,
        last_action_s={**state.last_action_s, mine.scope: receipt.at_s},
    )


def _engine(state: State, event: EngineChanged, book: Book) -> State:
    book.write(
        "engine",
        f"the engine runs {event.configuration.as_json()} ({event.reason})",
        id=book.next_id("g"),
        body={"configuration": dict(event.configuration.as_json()), "reason": event.reason},
    )
    return replace(
        state,
        topology=event.topology,
        observed=event.configuration,
        desired=event.configuration,
        capabilities=event.capabilities,
        epoch=state.epoch + 1,
        epoch_since_s=event.at_s,
        window=(),
        active=tuple(replace(a, disturbed=a.disturbed or f"the engine changed: {event.reason}") for a in state.active),
    )


def _operator(state: State, event: Operator, book: Book, commands: list[Command]) -> State:
    id = book.write(
        "operator",
        f"{event.by}: {event.command} {event.target}".rstrip() + (f" ({event.why})" if event.why else ""),
        id=book.next_id("o"),
        because=[event.target],
        body={"by": event.by, "why": event.why, "command": event.command},
    )
    if event.command == "pause":
        return replace(state, paused=f"paused by {event.by}" + (f": {event.why}" if event.why else ""))
    if event.command == "resume":
        return replace(state, paused="")
    if event.command == "approve" and event.target in state.advised:
        proposal = state.advised[event.target]
        scope = state.topology[proposal.component].query if proposal.component in state.topology else "app"
        state = replace(state, advised={k: v for k, v in state.advised.items() if k != event.target})
        return apply(state, replace(proposal, id=event.target), scope, book, commands)
    if event.command == "revert":
        action = next((a for a in state.active if not event.target or a.command.id == event.target), None)
        if action is not None and action.applied_s is not None:
            state = replace(state, active=tuple(a for a in state.active if a is not action))
            return revert(state, action, id, book, commands)
    return state
