"""Which actions each kind of fault asks for. Every other action of the loop was not asked for.

The load never changes and is far below the capacity, so only a fault can ask for an action, and only

- for one of the actions in `ANSWERS`, against the cause that is named there,
- while the fault is active: from its beginning until the application is whole again and, if rows still wait then, until
  a batch leaves no more of them waiting than arrive in two triggers, but at most `BACKLOG_LIMIT_S`.

Nothing asks for a revert: no fault is mended by taking an action back. An order of the bench accounts for its action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeostat.core.actions import REPLACE, RETUNE, REVERT, SCALE_SOURCE, SCALE_UP
from homeostat.core.causes import SLOW_INSTANCE, UNDER_PROVISIONED
from homeostat.lab.chaos.log_watch import Change, LoggedAction
from homeostat.lab.chaos.trial import Trial

# The rows of a minute are processed within seconds. Longer would excuse almost any action, because faults come every
# half minute. A choice: as long as an action takes to settle.
BACKLOG_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """These actions against this cause are right. If `struck_only`, they may end no executor but the one that was
    struck."""

    cause: str
    actions: tuple[str, ...]
    struck_only: bool = False

    def fits(self, change: Change, trial: Trial) -> bool:
        is_meant = change.cause == self.cause and change.action_kind in self.actions
        return is_meant and (not self.struck_only or set(change.retire) <= {trial.executor})


# Batches stood still or lacked an executor, so rows wait, and more power is a right answer to that.
_MORE = Answer(UNDER_PROVISIONED, (SCALE_UP, RETUNE, SCALE_SOURCE))
# An executor that stands still for some seconds is slower than the others.
_ANOTHER = Answer(SLOW_INSTANCE, (REPLACE,), struck_only=True)

ANSWERS: dict[str, tuple[Answer, ...]] = {
    "executor-killed": (_MORE,),
    "executor-stopped": (_ANOTHER, _MORE),
    "worker-killed": (_MORE,),  # its executors die with it
    "worker-stopped": (),  # its executors run on
    "master-killed": (_MORE,),  # leads to a restart
    "master-stopped": (),
    "driver-killed": (_MORE,),
    "driver-jvm-killed": (_MORE,),
    "driver-stopped": (_MORE,),
    "supervisor-killed": (_MORE,),
    "supervisor-stopped": (),
    "cluster-keeper-killed": (_MORE,),
    "driver-keeper-killed": (_MORE,),
    # The query runs on without its manager, or does not notice at all.
    "manager-raises": (),
    "manager-hangs": (),
    "manager-ends": (),
    "clock-back": (),
    "clock-forth": (),
    "rest-late": (),
    "rest-garbage": (),
    "rest-half": (),
    "rest-error": (),
    "rest-silent": (),
    "store-locked": (),
    "store-removed": (),
    "store-truncated": (),
    "store-full": (),
    "second-run": (),
    "second-manager": (),
    "sink-hung": (_MORE,),
    # The driver is killed.
    "scale-interrupted": (_MORE,),
    "rescale-interrupted": (_MORE,),
}


def objection(action: LoggedAction, trials: Sequence[Trial]) -> str:
    """Why the action was not asked for; empty if it was."""
    if action.ordered:
        return ""
    if action.action_kind == REVERT:
        return "no fault is mended by taking an action back"
    active = [trial for trial in trials if _is_active(trial, action)]
    if not active:
        return _no_fault(action, trials)
    for change in action.changes:
        if not any(answer.fits(change, trial) for trial in active for answer in ANSWERS[trial.kind]):
            wants = "; ".join(f"{trial.kind} asks for {_wanted(trial)}" for trial in active)
            return f"{wants}, and this is {_words(change)}"
    return ""


def _is_active(trial: Trial, action: LoggedAction) -> bool:
    if trial.began_s <= action.seen_s <= trial.over_s:
        return True
    has_backlog = action.behind_since_s <= trial.over_s
    return has_backlog and trial.over_s < action.seen_s <= trial.over_s + BACKLOG_LIMIT_S


def _no_fault(action: LoggedAction, trials: Sequence[Trial]) -> str:
    past = [trial for trial in trials if trial.over_s <= action.seen_s]
    if not past:
        return "no fault had been injected"
    last = max(past, key=lambda trial: trial.over_s)
    return f"no fault was active: {last.kind} was over for {action.seen_s - last.over_s:.0f} s, with its rows processed"


def _wanted(trial: Trial) -> str:
    answers = ANSWERS[trial.kind]
    words = (
        f"{' or '.join(answer.actions)} against {answer.cause}"
        + (f" of executor {trial.executor or 'that was struck'}" if answer.struck_only else "")
        for answer in answers
    )
    return ", ".join(words) or "no action"


def _words(change: Change) -> str:
    whom = f" of executor {', '.join(change.retire)}" if change.retire else ""
    return f"{change.action_kind} against {change.cause or 'no cause'}{whom}"
