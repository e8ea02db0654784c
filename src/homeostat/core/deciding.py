"""From proposals to commands, through memory, guards, the arbiter and the mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from homeostat.core import sentences
from homeostat.core.actions import ALERT, REVERT
from homeostat.core.arbiter import Choice, Refusal, Refused
from homeostat.core.batch_intervals import telling
from homeostat.core.causes import INCONCLUSIVE, RISE_AHEAD, SLO_UNMET, cause_of
from homeostat.core.configuration import Knob, Patch, Replace, Restart, SetLive, Step, diff
from homeostat.core.digest import Digest
from homeostat.core.effects import Effects, change_fields
from homeostat.core.events import Apply
from homeostat.core.evidence import LoadRise
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Proposal
from homeostat.core.guards import GuardContext, Wish
from homeostat.core.loop_state import EARN_AFTER, ActiveAction, Advice, State, acted, since
from homeostat.core.memory import ActionKey, Context
from homeostat.core.policy_definition import Policy
from homeostat.core.records import ActionContent, AdviceContent, RejectionContent
from homeostat.core.symptoms import RISE_SEEN_S
from homeostat.core.traffic import MINUTE_S
from homeostat.core.view import View
from homeostat.core.worker_pace import paces

# A command counts as failed after this many times the time that the engine expects, plus this constant. More waits
# longer for an engine that will not answer; less gives up on a slow one. Choices.
_TIMES_EXPECTED, _SLACK_S = 3.0, 60.0
# How many digests a trial looks back over, and how many of them at most since the problem began: more are steadier, but
# the load may have been different. Choices.
_TRIAL_LOOK_BACK, _LARGEST_BEFORE = 60, 30
# The load at the time of an action is the median arrival of this many digests: two minutes of batches every ten
# seconds. More are steadier, fewer are newer. A choice.
_LOAD_LOOK_BACK = 12


def act(
    policy: Policy,
    state: State,
    view: View,
    proposals: Sequence[Proposal],
    effects: Effects,
) -> tuple[State, tuple[str, ...]]:
    alerts = [p for p in proposals if p.kind == ALERT]
    wishes = [p for p in proposals if p.kind != ALERT]
    if state.mode == "observe":
        alerts += [_as_alert(proposal) for proposal in wishes]
    state = send_alerts(state, alerts, effects)
    shrink_wishes = _shrink_wishes(state, view, wishes)
    if shrink_wishes or state.shrink_wishes:
        state = replace(state, shrink_wishes=shrink_wishes)
    context = guard_context(state, view)

    def check(proposal: Proposal) -> Proposal | Refusal:
        return _check(policy, state, context, proposal)

    def success_rate(proposal: Proposal) -> float:
        return policy.memory.success_rate(state.memory, action_key(proposal))

    try:
        choice = policy.arbiter.choose(wishes, context, success_rate, check)
    except Exception as error:
        effects.left_out("choosing an action", type(error).__name__, f"{type(error).__name__}: {error}")
        choice = Choice((), ())
    state = _refuse(state, choice.rejected, effects)
    for proposal in choice.chosen:
        state = _take(policy, state, proposal, context.scope(proposal), effects)
    reasons = tuple(f"{p.kind} {p.component}: {refusal}" for p, refusal in choice.rejected)
    if state.advised:
        state = replace(state, advised=_still_advised(state, wishes))
    return state, reasons


def guard_context(state: State, view: View) -> GuardContext:
    busy = {
        action.scope: f"{action.command.id} is {'under way' if action.applied_s is None else 'being judged'}"
        for action in state.active
    }
    return GuardContext(
        view,
        state.paused,
        busy,
        state.last_action_s,
        state.shrink_wishes,
        since(state.diagnoses),
        _overtaken(state),
        state.last_remedy_s,
    )


def _overtaken(state: State) -> frozenset[str]:
    """The scopes without an action under way, in which there is a cause that no action being judged is for."""
    scopes = {action.scope for action in state.active}
    return frozenset(
        scope for scope in scopes if all(_is_overtaken(state, each) for each in state.active if each.scope == scope)
    )


def _is_overtaken(state: State, action: ActiveAction) -> bool:
    """An objective that is not met yet is no new cause: the verdict waits to see whether it will be met."""
    causes = {(diagnosis.cause, diagnosis.component) for diagnosis in action.proposal.because}
    return action.applied_s is not None and any(
        key not in causes and key[0] not in (INCONCLUSIVE, RISE_AHEAD, SLO_UNMET) and not cause_of(key[0]).harmless
        for key in state.diagnoses
    )


def _check(policy: Policy, state: State, context: GuardContext, proposal: Proposal) -> Proposal | Refusal:
    view = context.view
    changed = view.configuration.effective_part(proposal.patch)
    if not changed:
        return Refusal("nothing to change", "the values are already set")
    proposal = replace(proposal, patch=changed)
    reason = policy.memory.block_reason(
        state.memory, action_key(proposal), action_context(state), view.now_s, policy.settle_s
    )
    if reason:
        return Refusal("memory", reason)
    for guard in policy.guards:
        verdict = guard.check(proposal, context)
        if isinstance(verdict, str):
            return Refusal(guard.name, verdict)
        proposal = verdict
    return proposal


def _take(policy: Policy, state: State, proposal: Proposal, scope: str, effects: Effects) -> State:
    earning = state.mode == "earn" and state.earned < EARN_AFTER
    if state.mode == "regulate" or (state.mode == "earn" and not earning):
        state = _regret(policy, state, proposal, scope, effects.now_s)
        return apply(state, effects.proposal(proposal), scope, effects)
    if state.mode == "observe":
        return _refuse(state, ((proposal, Refusal("mode", "only observing")),), effects)
    if any(a.cause == proposal.cause and a.component == proposal.component for a in state.advice):
        return state
    proposal = effects.proposal(proposal)
    id = effects.write(
        AdviceContent(**change_fields(proposal)),
        sentences.advice_sentence(proposal),
        component=proposal.component,
        because=[proposal.id],
    )
    advice = _advice(policy, id, proposal, effects.now_s)
    return replace(state, advice=(*state.advice, advice), advised={**state.advised, id: proposal})


def _advice(policy: Policy, id: str, proposal: Proposal, now_s: float) -> Advice:
    """Advice is due for scoring when the problem has had time to go away; for a forecast rise, when the rise should
    have been measured.
    """
    if proposal.cause != RISE_AHEAD:
        return Advice(id, proposal.cause, proposal.component, now_s + policy.settle_s, now_s)
    rise = proposal.because[0].evidence.find(LoadRise)
    ahead_s = (rise.ahead_s if rise is not None else 0.0) + RISE_SEEN_S + MINUTE_S
    return Advice(
        id,
        proposal.cause,
        proposal.component,
        now_s + max(ahead_s, policy.settle_s),
        now_s,
        rise.limit_per_s if rise is not None else None,
    )


def apply(state: State, proposal: Proposal, scope: str, effects: Effects) -> State:
    """Write the action to the log and issue its command."""
    # A command names every knob, so it must include what other commands have under way.
    desired = state.desired.patched(proposal.patch)
    steps = diff(state.desired, desired, state.capabilities)
    if not steps:
        return _refuse(state, ((proposal, Refusal("engine", "the engine cannot do this")),), effects)
    limit_s = time_limit_s(state, steps)
    content = ActionContent(
        **change_fields(proposal),
        previous={str(knob): state.observed[knob] for knob in proposal.patch.values if knob in state.observed.values},
        desired=desired.as_json(),
        retired=tuple(sorted(desired.retired)),
        steps=tuple(sentences.step_words(step) for step in steps),
        time_limit_s=limit_s,
    )
    because = [proposal.id, *(diagnosis.id for diagnosis in proposal.because)]
    text = sentences.change_sentence(proposal)
    id = effects.write(content, text, component=proposal.component, because=because)
    command = Apply(id, effects.now_s, desired, steps, limit_s, tuple(because))
    effects.command(command)
    action = ActiveAction(
        command,
        proposal,
        scope,
        state.observed,
        _before(state, proposal),
        troubled=frozenset(component for _, component in (*state.symptoms, *state.diagnoses)),
        paces=paces(state.window),
        hosts=state.hosts,
    )
    state = replace(state, desired=desired, active=(*state.active, action), shrink_wishes={})
    return acted(state, action, effects.now_s)


def _regret(policy: Policy, state: State, proposal: Proposal, scope: str, now_s: float) -> State:
    """If the loop grows soon after a shrink that seemed successful, the load comes back: shrink later next time."""
    cost = state.capabilities.cost
    before = state.shrunk.get(scope)
    grows = cost(state.observed.patched(proposal.patch)) > cost(state.observed)
    if before is None or not grows:
        return state
    if now_s < before.at_s + policy.regret_s:
        entry = replace(before, verdict="harmful", at_s=now_s)
        state = replace(state, memory=policy.memory.learn(state.memory, entry))
    return replace(state, shrunk={key: entry for key, entry in state.shrunk.items() if key != scope})


def revert(state: State, action: ActiveAction, because: str, effects: Effects, parts: Sequence[Proposal] = ()) -> State:
    """Restore the values from before the action, or those of these parts of it. A replaced worker stays replaced,
    because the old one is gone.
    """
    parts = parts or action.proposal.remedies
    knobs = [knob for part in parts for knob in part.patch.values]
    values = {knob: action.before[knob] for knob in knobs if knob in action.before.values}
    patch = state.observed.effective_part(Patch(values))
    if not patch:
        return state
    proposal = Proposal(
        REVERT,
        tuple(diagnosis for part in parts for diagnosis in part.because),
        patch,
        parts[0].component,
        message=f"reverts {action.command.id}",
    )
    proposal = replace(proposal, id=because)
    return apply(state, proposal, action.scope, effects)


def action_key(proposal: Proposal) -> ActionKey:
    return ActionKey(proposal.cause, proposal.kind, proposal.component)


def action_context(state: State) -> Context:
    recent = [d.arrival_per_s for d in state.history[-_LOAD_LOOK_BACK:] if math.isfinite(d.arrival_per_s)]
    return Context(
        float(np.median(recent)) if recent else math.nan,
        dict(state.observed.as_json()),
        state.topology.plan,
        state.hosts,
    )


def time_limit_s(state: State, steps: Sequence[Step]) -> float:
    knobs = [knob for step in steps if isinstance(step, SetLive | Restart) for knob in step.values]
    specs = state.capabilities.knobs
    expected_s = max((specs[knob].apply_s for knob in knobs if knob in specs), default=0.0)
    if any(isinstance(step, Replace) for step in steps):
        expected_s += state.capabilities.replace_s
    return _TIMES_EXPECTED * expected_s + _SLACK_S


def _before(state: State, proposal: Proposal) -> tuple[Digest, ...]:
    """Return what was measured in the old configuration since the trouble began."""
    began = [
        state.diagnoses[(d.cause, d.component)].since_s
        for d in proposal.because
        if (d.cause, d.component) in state.diagnoses
    ]
    mine = [d for d in state.history[-_TRIAL_LOOK_BACK:] if d.epoch == state.epoch]
    onset_s = min(began, default=-math.inf)
    # A diagnosis is based on the latest observation at that time and, unless that was late, on a few before it.
    onset = sum(d.at_s <= onset_s for d in mine)
    based_on = telling(mine[:onset], LEAST_OBSERVATIONS) or LEAST_OBSERVATIONS
    return tuple(mine[max(0, onset - based_on) :][-_LARGEST_BEFORE:])


def _shrink_wishes(state: State, view: View, proposals: Sequence[Proposal]) -> dict[Knob, Wish]:
    wishes: dict[Knob, Wish] = {}
    for proposal in proposals:
        for knob, value in proposal.patch.values.items():
            if value < view.configuration.get(knob, value) and view.spec(knob).cost > 0:
                old = state.shrink_wishes.get(knob, Wish(view.now_s, value))
                wishes[knob] = Wish(old.since_s, max(old.value, value))
    return wishes


def _as_alert(proposal: Proposal) -> Proposal:
    where = proposal.component or "the application"
    action = sentences.change_sentence(proposal)
    message = f"{proposal.cause} at {where}. Homeostat only observes; otherwise it would {action}"
    return replace(proposal, kind=ALERT, patch=Patch(), message=message)


def send_alerts(state: State, alerts: Sequence[Proposal], effects: Effects) -> State:
    """Send each alert once, and again only after the problem has ended in between."""
    if not alerts and not state.alerts:
        return state
    since_s: dict[tuple[str, str], float] = {}
    for proposal in alerts:
        key = (proposal.cause, proposal.component)
        if key not in state.alerts:
            because = tuple(diagnosis.id for diagnosis in proposal.because)
            effects.alert(proposal.cause, proposal.component, proposal.message, because)
        since_s[key] = state.alerts.get(key, effects.now_s)
    return replace(state, alerts=since_s)


def _refuse(state: State, refusals: Sequence[Refused], effects: Effects) -> State:
    """Log each refusal once, and again only when its ground changes."""
    if not refusals:
        return state
    grounds = {}
    for proposal, refusal in refusals:
        key = (proposal.kind, proposal.component, proposal.cause)
        if state.refusals.get(key) != refusal.ground:
            source = proposal if proposal.id else effects.proposal(proposal)
            reason = str(refusal)
            effects.write(
                RejectionContent(reason, proposal.kind),
                sentences.rejection_sentence(reason),
                component=proposal.component,
                because=[source.id],
            )
        grounds[key] = refusal.ground
    return replace(state, refusals={**state.refusals, **grounds})


def _still_advised(state: State, proposals: Sequence[Proposal]) -> dict[str, Proposal]:
    keys = {(p.kind, p.component, p.cause) for p in proposals}
    return {id: p for id, p in state.advised.items() if (p.kind, p.component, p.cause) in keys}
