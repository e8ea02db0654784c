"""The results of actions: time limits, outcomes, what the loop learns from them, and what it reverts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from homeostat.core import sentences
from homeostat.core.actions import REVERT
from homeostat.core.calibration import JudgedCauses, stated_probability, with_verdict
from homeostat.core.causes import DATA_SKEW, RISE_AHEAD, SLOW_INSTANCE, SOURCE_SKEW, UNDER_PROVISIONED, cause_of
from homeostat.core.change_parts import PartOutcomeContent
from homeostat.core.deciding import action_context, action_key, revert
from homeostat.core.effects import Effects
from homeostat.core.findings import Diagnosis, Outcome, Proposal, Symptom
from homeostat.core.loop_state import ActiveAction, Advice, State
from homeostat.core.memory import MemoryEntry
from homeostat.core.part_verdicts import PartOutcome, part_outcomes
from homeostat.core.policy_definition import Policy
from homeostat.core.records import (
    OutcomeContent,
    ReceiptContent,
    RejectionContent,
)
from homeostat.core.symptoms import UNHEALTHY_SYMPTOMS
from homeostat.core.trial import LONGEST_SETTLINGS, TAKEN_BACK, Trial
from homeostat.core.trust import Trusts, with_outcome
from homeostat.core.view import View
from homeostat.core.worker_pace import NOTICED, paces

# How long after its time limit a command may still be acknowledged. The engine has the same limit, and its answer takes
# a while to arrive. A choice.
_GRACE_S = 60.0
# Uneven keys come with the data. No action causes them, unless it changes how their rows are distributed.
_FROM_THE_DATA = frozenset({DATA_SKEW, SOURCE_SKEW})


def expire(state: State, effects: Effects) -> State:
    """Give up commands that the engine never acknowledged. The observed configuration stays as it was."""
    late = [
        a
        for a in state.active
        if a.applied_s is None and effects.now_s > a.command.at_s + a.command.time_limit_s + _GRACE_S
    ]
    for action in late:
        effects.write(
            ReceiptContent(action.command.id, applied=False, detail="time limit"),
            f"{action.command.id} was never acknowledged",
            component=action.proposal.component,
            because=[action.command.id],
        )
    if not late:
        return state
    return replace(state, active=tuple(a for a in state.active if a not in late), desired=state.observed)


def judge(policy: Policy, state: State, view: View, effects: Effects, *, looked: bool = True) -> State:
    """Close the trials that have an outcome. `looked` says whether the detectors have seen the newest observations."""
    for action in state.active:
        if action.applied_s is None:
            continue
        trial = _trial(policy, state, view, action, effects.now_s, looked)
        outcome = _outcome(policy, trial, effects) if trial is not None else None
        if outcome is not None:
            state = _close(policy, state, action, outcome, part_outcomes(state, action, trial, outcome), effects)
    return score_advice(state, effects)


def _trial(policy: Policy, state: State, view: View, action: ActiveAction, now_s: float, looked: bool) -> Trial | None:
    prediction, applied_s = action.proposal.prediction, action.applied_s
    if prediction is None or applied_s is None:
        return None
    after = tuple(d for d in view.current if d.at_s > applied_s)
    if not after and not action.disturbed and now_s < applied_s + LONGEST_SETTLINGS * policy.settle_s:
        return None
    return Trial(
        component=action.proposal.component,
        prediction=prediction,
        before=action.before_digests,
        after=after,
        micro_batch=view.micro_batch,
        elapsed_s=now_s - applied_s,
        settle_s=policy.settle_s,
        shrinking=_saves(state, action),
        disturbed=action.disturbed or _new_fault(state, action),
        unhealthy=_unhealthy(state, view, action),
        suspect=_suspect(state, action),
        looked=looked,
    )


def _outcome(policy: Policy, trial: Trial, effects: Effects) -> Outcome | None:
    try:
        return policy.judge.judge(trial)
    except Exception as error:
        effects.failure("the judge", f"{type(error).__name__}: {error}")
        return Outcome("unclear", reason="the judge failed")


def _saves(state: State, action: ActiveAction) -> bool:
    """Whether the action was meant to save resources. A plan that also gains time is judged by that time."""
    cost, prediction = state.capabilities.cost, action.proposal.prediction
    gains_time = prediction is not None and prediction.gain > 0
    return cost(action.command.desired) < cost(action.before) and not gains_time


def _unhealthy(state: State, view: View, action: ActiveAction) -> str:
    """A problem of the whole application, or of a component that has fewer resources than before the action."""
    before = action.before.values
    lowered = {knob for knob, value in action.command.desired.values.items() if value < before.get(knob, value)}
    for kind, component in state.symptoms:
        everywhere = component not in view.topology
        if kind in UNHEALTHY_SYMPTOMS and (everywhere or view.topology[component].scaled_by in lowered):
            return kind
    return ""


def _new_fault(state: State, action: ActiveAction) -> str:
    touched_components = action.proposal.prediction.touched if action.proposal.prediction else ()
    for (cause, component), standing in state.diagnoses.items():
        if cause_of(cause).fault and component not in touched_components and component not in action.troubled:
            return f"a new problem appeared elsewhere: {cause} at {component or 'the application'}"
        if cause in _FROM_THE_DATA and _came_later(state, action, component, standing.since_s):
            return f"a new problem appeared: {cause} at {component}"
        slow_workers = _turned_slow(standing.finding, action) if cause == SLOW_INSTANCE else ()
        if slow_workers:
            workers = ", ".join(slow_workers)
            return f"a new problem appeared: {cause} at {component}, where {workers} had been as fast as the others"
    return ""


def _came_later(state: State, action: ActiveAction, component: str, since_s: float) -> bool:
    if component not in state.topology or since_s <= action.command.at_s:
        return False
    distributing = {state.topology[component].spread, state.topology[component].partitions}
    return distributing.isdisjoint(action.proposal.patch.values)


def _suspect(state: State, action: ActiveAction) -> str:
    """Name the workers that were as fast as others when the action was decided and are slower now.

    The detectors need a few batches more to be sure of it. Until then, the action is not blamed.
    """
    now = paces(state.window)
    slow = [worker for worker, pace in action.paces.items() if pace < NOTICED <= now.get(worker, 0.0)]
    return f"{', '.join(slow)} may have become slow" if slow else ""


def _turned_slow(finding: Symptom | Diagnosis, action: ActiveAction) -> tuple[str, ...]:
    """Return the slow workers, if none of them was slow when the action was decided.

    Workers that are new since then do not count: they may be slow because of the action.
    """
    slow = finding.workers if isinstance(finding, Diagnosis) else ()
    return slow if all(action.paces.get(worker, math.inf) < NOTICED for worker in slow) else ()


def _close(
    policy: Policy,
    state: State,
    action: ActiveAction,
    outcome: Outcome,
    parts: Sequence[PartOutcome],
    effects: Effects,
) -> State:
    trust = state.trust
    for name in _relied_upon(action):
        trust = with_outcome(trust, name, outcome)
    record_id = _write_outcome(action, outcome, parts, trust, effects)
    memory, judged = state.memory, state.judged
    for each in parts:
        entry = MemoryEntry(
            action_key(each.part),
            each.verdict,
            effects.now_s,
            action_context(state),
            dict(action.before.as_json()),
            action.hosts,
        )
        memory, judged = policy.memory.learn(memory, entry), _judged(judged, each)
        if outcome.verdict == "shrunk":
            anywhere = replace(entry, context=replace(entry.context, values={}))
            state = replace(state, shrunk={**state.shrunk, action.scope: anywhere})
    state = replace(
        state, memory=memory, trust=trust, judged=judged, active=tuple(a for a in state.active if a is not action)
    )
    bad = tuple(each.part for each in parts if each.verdict in TAKEN_BACK and each.part.reversible)
    if bad:
        return _take_back(state, action, bad, record_id, effects)
    return state


def _judged(judged: JudgedCauses, outcome: PartOutcome) -> JudgedCauses:
    """An action is chosen for the first cause that it names. A revert has no cause."""
    if outcome.part.kind == REVERT or not outcome.part.because:
        return judged
    diagnosis = outcome.part.because[0]
    return with_verdict(judged, diagnosis.cause, stated_probability(diagnosis), outcome.verdict)


def _write_outcome(
    action: ActiveAction, outcome: Outcome, parts: Sequence[PartOutcome], trust: Trusts, effects: Effects
) -> str:
    record = trust.get(action.proposal.component)
    content = OutcomeContent(
        action.command.id,
        outcome.verdict,
        outcome.reason,
        outcome.observed_gain,
        outcome.predicted_gain,
        outcome.standard_error,
        outcome.before,
        outcome.after,
        math.nan if record is None else record.off,
        _part_contents(action, parts),
    )
    text = ". ".join(
        [sentences.outcome_sentence(action.command.id, outcome)]
        + [sentences.part_sentence(each.part, each.reason) for each in parts if each.verdict != outcome.verdict]
    )
    return effects.write(content, text, component=action.proposal.component, because=[action.command.id])


def _relied_upon(action: ActiveAction) -> tuple[str, ...]:
    """Return the components of the prediction. One outcome cannot show for which of them it was wrong."""
    prediction = action.proposal.prediction
    return (prediction.touched if prediction is not None else ()) or (action.proposal.component,)


def _part_contents(action: ActiveAction, parts: Sequence[PartOutcome]) -> tuple[PartOutcomeContent, ...]:
    """Only a plan has parts of its own."""
    if not action.proposal.parts:
        return ()
    return tuple(
        PartOutcomeContent(each.part.kind, each.part.cause, each.part.component, each.verdict, each.reason)
        for each in parts
    )


def _take_back(
    state: State, action: ActiveAction, parts: tuple[Proposal, ...], because: str, effects: Effects
) -> State:
    """Revert these parts, and keep the other parts of the same plan."""
    reason = state.paused or ("only observing" if state.mode == "observe" else "")
    if not reason:
        return revert(state, action, because, effects, parts)
    effects.write(
        RejectionContent(reason, REVERT),
        sentences.rejection_sentence(f"{action.command.id} is not reverted: {reason}"),
        component=action.proposal.component,
        because=[because],
    )
    return state


def score_advice(state: State, effects: Effects) -> State:
    """Score the advice that is due: it was right if its problem did not go away by itself.

    Advice about a rise was right if the load has come. A forecast that is still valid proves nothing.
    """
    due = [a for a in state.advice if effects.now_s >= a.due_s]
    earned = state.earned
    for advice in due:
        right, why = _load_came(state, advice) if advice.cause == RISE_AHEAD else _problem_stayed(state, advice)
        earned = earned + 1 if right else max(0, earned - 1)
        verdict = "right" if right else "not needed"
        effects.write(
            OutcomeContent(advice.id, verdict),
            sentences.verdict_sentence(advice.id, verdict, why),
            component=advice.component,
            because=[advice.id],
        )
    if not due:
        return state
    return replace(state, earned=earned, advice=tuple(a for a in state.advice if a not in due))


def _problem_stayed(state: State, advice: Advice) -> tuple[bool, str]:
    right = (advice.cause, advice.component) in state.diagnoses
    return right, "the problem stayed" if right else "the problem went away"


def _load_came(state: State, advice: Advice) -> tuple[bool, str]:
    highest = state.traffic.highest_per_s(advice.given_s)
    enough = advice.awaited_per_s is not None and highest >= advice.awaited_per_s
    right = enough or (UNDER_PROVISIONED, advice.component) in state.diagnoses
    return right, "the load has come" if right else "the load has not come"
