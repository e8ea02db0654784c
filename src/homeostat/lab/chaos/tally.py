"""The results of the faults: how many were survived and how soon, and which actions were unexpected."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeostat.core.actions import REVERT
from homeostat.core.causes import cause_of
from homeostat.lab.chaos.log_watch import LoggedAction

# How long after the application is whole again the loop may still answer to what a fault left behind: waiting rows, of
# which a minute's are processed within seconds. Longer would excuse almost any action, because faults come every half
# minute. A choice: as long as an action takes to settle.
ANSWER_S = 120.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault, from `began_s` on. `recover_s` counts from its end until the application had recovered, None if it did
    not within the limit; `seen` then says what was observed instead. `exits` counts how often the command ended. It was
    over at `over_s`, recovered or not.
    """

    kind: str
    began_s: float
    detail: str
    recover_s: float | None
    seen: str = ""
    exits: int = 0
    over_s: float = 0.0

    @property
    def survived(self) -> bool:
        return self.recover_s is not None and not self.seen


def unasked_actions(
    actions: Iterable[LoggedAction], trials: Sequence[Trial], causes: Mapping[str, frozenset[str]]
) -> list[LoggedAction]:
    """Actions that are explained neither by a command of the benchmark nor by a fault. `causes` has, for each kind of
    fault, the diagnoses that it may rightly lead to. The action must be one against that diagnosis, and come while the
    fault lasts or soon after. The load never changes, so it asks for nothing.
    """
    return [action for action in actions if not action.ordered and not _is_answer(action, trials, causes)]


def _is_answer(action: LoggedAction, trials: Sequence[Trial], causes: Mapping[str, frozenset[str]]) -> bool:
    if action.action_kind not in (*cause_of(action.cause).mended_by, REVERT):
        return False
    return any(
        action.cause in causes[trial.kind] and trial.began_s <= action.seen_s <= trial.over_s + ANSWER_S
        for trial in trials
    )


def summary(
    trials: Sequence[Trial],
    actions: Sequence[LoggedAction],
    causes: Mapping[str, frozenset[str]],
    *,
    lost: int,
    doubled: int,
    leftovers: Sequence[str],
) -> dict[str, Any]:
    """The result of a run. It is accepted if every fault was survived and no harm of any kind was done."""
    kinds = sorted({trial.kind for trial in trials})
    unasked = unasked_actions(actions, trials, causes)
    failures = [trial for trial in trials if not trial.survived]
    return {
        "accepted": not (failures or lost or doubled or unasked or leftovers) and bool(trials),
        "injected": len(trials),
        "survived": len(trials) - len(failures),
        "lost": lost,
        "doubled": doubled,
        "unasked_actions": [_action_json(action, trials) for action in unasked],
        "leftover_processes": list(leftovers),
        "kinds": {kind: _kind_json([trial for trial in trials if trial.kind == kind]) for kind in kinds},
        "failures": [
            {"kind": trial.kind, "detail": trial.detail, "at_s": round(trial.began_s, 1), "seen": trial.seen}
            for trial in failures
        ],
        "actions": len(actions),
        "ordered_actions": sum(action.ordered for action in actions),
        "reverts": sum(action.action_kind == REVERT for action in actions),
    }


def _kind_json(trials: Sequence[Trial]) -> dict[str, Any]:
    times_s = [trial.recover_s for trial in trials if trial.survived and trial.recover_s is not None]
    return {
        "injected": len(trials),
        "survived": sum(trial.survived for trial in trials),
        "recover_s": {
            "median": round(statistics.median(times_s), 1) if times_s else None,
            "max": round(max(times_s), 1) if times_s else None,
        },
        "restarts_of_the_command": sum(trial.exits for trial in trials),
    }


def _action_json(action: LoggedAction, trials: Sequence[Trial]) -> dict[str, Any]:
    before = [trial for trial in trials if trial.began_s <= action.seen_s]
    return {
        "id": action.id,
        "kind": action.action_kind,
        "cause": action.cause,
        "text": action.text,
        "after": before[-1].kind if before else "",
        "seconds_after": round(action.seen_s - before[-1].began_s, 1) if before else None,
    }
