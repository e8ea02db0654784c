"""Commands by people: pause, resume, approve, revert, apply, resolve. If one cannot be carried out, the log says
why.
"""

from __future__ import annotations

from dataclasses import replace

from homeostat.core import sentences
from homeostat.core.actions import ALERT, BY_HAND
from homeostat.core.configuration import Patch
from homeostat.core.deciding import apply, guard_context, revert
from homeostat.core.effects import Effects
from homeostat.core.events import Operator
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.guards import Bounds, CostLimit, Guard, GuardContext, KillSwitch, MostReplaced, OneInFlight
from homeostat.core.loop_state import ActiveAction, State
from homeostat.core.plugins import Runner, look
from homeostat.core.policy_definition import Policy
from homeostat.core.records import OperatorContent, OutcomeContent, RejectionContent

# People may skip the guards that only wait, but not those that prevent harm. They may replace any number of workers
# except all.
_ALWAYS: tuple[Guard, ...] = (KillSwitch(), OneInFlight(), Bounds(), MostReplaced(share=1.0), CostLimit())


def obey(policy: Policy, state: State, event: Operator, effects: Effects) -> State:
    id = effects.write(
        OperatorContent(event.command, event.by, event.why),
        sentences.operator_sentence(event),
        because=[event.order, event.target if event.command != "resolve" else ""],
    )
    match event.command:
        case "pause":
            return replace(state, paused=f"paused by {event.by}" + (f": {event.why}" if event.why else ""))
        case "resume":
            return replace(state, paused="")
        case "approve":
            return _approve(policy, state, event.target, id, effects)
        case "revert":
            return _revert(state, event.target, id, effects)
        case "apply":
            return _by_hand(policy, state, Patch(event.values), id, effects)
        case "resolve":
            return _resolve(policy, state, event.target, id, effects)


def _approve(policy: Policy, state: State, target: str, id: str, effects: Effects) -> State:
    advice = state.advised.get(target)
    if advice is None:
        return _answer(state, f"{target or 'nothing'} is not current advice", id, effects)
    return _do(policy, state, replace(advice, id=target), id, effects)


def _by_hand(policy: Policy, state: State, patch: Patch, id: str, effects: Effects) -> State:
    """Apply values that a person chose. They come without a prediction, so they are not judged, but guards apply."""
    specs = state.capabilities.knobs
    unknown = [str(knob) for knob in patch.values if knob not in specs]
    if unknown or not patch:
        there = ", ".join(map(str, sorted(specs))) or "none"
        return _answer(
            state, f"{', '.join(unknown) or 'nothing'} cannot be set here; available knobs: {there}", id, effects
        )
    refusal = state.capabilities.refusal(state.desired.patched(patch))
    patch = state.observed.effective_part(patch)
    if refusal or not patch:
        return _answer(state, refusal or "nothing to change: the values are already set", id, effects)
    scopes = [knob.scope for knob in patch.values if knob.scope in state.topology]
    return _do(policy, state, Proposal(BY_HAND, (), patch, scopes[0] if scopes else "", id=id), id, effects)


def _resolve(policy: Policy, state: State, name: str, id: str, effects: Effects) -> State:
    """Carry out the best proposal of one resolver for the current diagnoses, whatever the mode."""
    resolver = next((each for each in policy.resolvers if each.name == name), None)
    if resolver is None:
        there = ", ".join(each.name for each in policy.resolvers) or "none"
        return _answer(state, f"there is no resolver {name!r}; available: {there}", id, effects)
    view = look(policy, state, effects.now_s)
    standing = [one.finding for one in state.diagnoses.values() if isinstance(one.finding, Diagnosis)]
    proposals = Runner(effects, view.topology).run([resolver], Proposal, lambda each: each.resolve(view, standing))
    wishes = [proposal for proposal in proposals if proposal.kind != ALERT]
    if not wishes:
        causes = ", ".join(dict.fromkeys(diagnosis.cause for diagnosis in standing)) or "none"
        reason = "; ".join(proposal.message for proposal in proposals) or f"the current diagnoses are: {causes}"
        return _answer(state, f"{name} proposes nothing: {reason}", id, effects)
    best = max(wishes, key=lambda each: each.probability * each.benefit - each.cost)
    return _do(policy, state, replace(best, id=id), id, effects)


def _do(policy: Policy, state: State, proposal: Proposal, id: str, effects: Effects) -> State:
    context = guard_context(state, look(policy, state, effects.now_s))
    verdict = _check(proposal, context)
    if isinstance(verdict, str):
        return _answer(state, verdict, id, effects)
    state = _no_longer_advised(state, verdict)
    return apply(state, verdict, context.scope(verdict), effects)


def _no_longer_advised(state: State, proposal: Proposal) -> State:
    """Remove advice that was followed, because it can no longer be scored."""
    about = (proposal.cause, proposal.component)
    return replace(
        state,
        advised={id: each for id, each in state.advised.items() if id != proposal.id},
        advice=tuple(each for each in state.advice if (each.cause, each.component) != about),
    )


def _check(proposal: Proposal, context: GuardContext) -> Proposal | str:
    """Return the proposal as the guards allow it, or the reason against it."""
    for guard in _ALWAYS:
        verdict = guard.check(proposal, context)
        if isinstance(verdict, str):
            return f"{guard.name}: {verdict}"
        proposal = verdict
    return proposal


def _revert(state: State, target: str, id: str, effects: Effects) -> State:
    """Revert the action that is being judged; if there is none, the last one that took effect."""
    applied_actions = [action for action in state.active if action.applied_s is not None]
    earlier = [state.last] if state.last is not None and not state.active else []
    action = next((a for a in (*applied_actions, *earlier) if target in ("", a.command.id)), None)
    if action is None:
        reason = f"only the last action that took effect can be reverted, and that is not {target}"
        return _answer(state, reason if target else "there is no action to revert", id, effects)
    if not action.proposal.patch.values:
        return _answer(state, f"{action.command.id} replaced workers, which cannot be reverted", id, effects)
    if action in applied_actions:
        state = replace(state, active=tuple(a for a in state.active if a is not action))
        _supersede(action, id, effects)
    taken_back = revert(state, action, id, effects)
    if taken_back is state:
        return _answer(state, f"{action.command.id} has nothing to revert", id, effects)
    return taken_back


def _supersede(action: ActiveAction, id: str, effects: Effects) -> None:
    reason = "a person reverted it before it was judged"
    effects.write(
        OutcomeContent(action.command.id, "superseded", reason),
        sentences.verdict_sentence(action.command.id, "superseded", reason),
        component=action.proposal.component,
        because=[action.command.id, id],
    )


def _answer(state: State, reason: str, id: str, effects: Effects) -> State:
    effects.write(RejectionContent(reason), sentences.refusal_sentence(reason), because=[id])
    return state
