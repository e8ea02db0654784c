"""The actions that each kind of fault justifies. Every other action of the loop is unexpected.

The load never changes and is far below the capacity, so only a fault can justify an action, and only

- one of the actions in `ANSWERS`, against the cause that is named there,
- while the fault is active: from its beginning until the application is whole again and, if rows still wait then, until
  a batch leaves no more of them waiting than arrive in two triggers, but at most `BACKLOG_LIMIT_S`.

Nothing justifies a revert, because reverting an action fixes no fault. A command of the benchmark explains its action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeostat.core.actions import REPLACE, RETUNE, REVERT, SCALE_SOURCE, SCALE_UP
from homeostat.core.causes import SLOW_INSTANCE, UNDER_PROVISIONED
from homeostat.lab.chaos.log_watch import Change, LoggedAction
from homeostat.lab.chaos.trial import Trial

# The rows of a minute are processed within seconds. A longer limit would excuse almost any action, because faults come
# every half minute. A choice: as long as an action takes to settle.
BACKLOG_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    """These actions against this cause are justified. With `struck_only`, they may end only the executor that the fault
    hit."""

    cause: str
    actions: tuple[str, ...]
    struck_only: bool = False

    def fits(self, change: Change, trial: Trial) -> bool:
        is_meant = change.cause == self.cause and change.action_kind in self.actions
        return is_meant and (not self.struck_only or set(change.retire) <= {trial.executor})


# Batches were blocked or lacked an executor, so rows wait, and adding capacity is justified.
_MORE = Answer(UNDER_PROVISIONED, (SCALE_UP, RETUNE, SCALE_SOURCE))
# An executor that is stopped for some seconds is slower than the others.
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
    """Why the action is unexpected; empty if it is not."""
    if action.ordered:
        return ""
    if action.action_kind == REVERT:
        return "reverting an action fixes no fault"
    active = [trial for trial in trials if _is_active(trial, action)]
    if not active:
        return _no_fault(action, trials)
    for change in action.changes:
        if not any(answer.fits(change, trial) for trial in active for answer in ANSWERS[trial.kind]):
            wants = "; ".join(f"{trial.kind} justifies {_justified_actions(trial)}" for trial in active)
            return f"{wants}, but this is {_words(change)}"
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
    since_s = action.seen_s - last.over_s
    return f"no fault was active: {last.kind} ended {since_s:.0f} s earlier, and its backlog was processed"


def _justified_actions(trial: Trial) -> str:
    answers = ANSWERS[trial.kind]
    victim = f"executor {trial.executor}" if trial.executor else "the executor that was hit"
    words = (
        f"{' or '.join(answer.actions)} against {answer.cause}" + (f" of {victim}" if answer.struck_only else "")
        for answer in answers
    )
    return ", ".join(words) or "no action"


def _words(change: Change) -> str:
    whom = f" of executor {', '.join(change.retire)}" if change.retire else ""
    return f"{change.action_kind} against {change.cause or 'no cause'}{whom}"
