"""The results of the faults: which ones the application survived and how soon, which rows differ, which actions were
unexpected."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from homeostat.core.actions import REVERT
from homeostat.lab.chaos.answers import objection
from homeostat.lab.chaos.log_watch import LoggedAction
from homeostat.lab.chaos.trial import Trial
from homeostat.lab.row_ledger import RowDifferences


def summary(
    trials: Sequence[Trial],
    actions: Sequence[LoggedAction],
    differences: RowDifferences,
    *,
    leftovers: list[str] | None,
    cut_off: Sequence[Trial] = (),
) -> dict[str, Any]:
    """The result of a run. It is accepted if every fault was survived and nothing else went wrong.

    Faults that were `cut_off` by an interrupt count neither as survived nor as failed, but justify actions. `leftovers`
    is None if nobody checked which processes are left.
    """
    kinds = sorted({trial.kind for trial in trials})
    unasked = unasked_actions(actions, [*trials, *cut_off])
    failures = [trial for trial in trials if not trial.survived]
    return {
        "accepted": bool(trials) and not (failures or differences or unasked) and leftovers == [],
        "injected": len(trials),
        "survived": len(trials) - len(failures),
        **asdict(differences),
        "unasked_actions": unasked,
        "leftover_processes": leftovers,
        "kinds": {kind: _kind_json([trial for trial in trials if trial.kind == kind]) for kind in kinds},
        "failures": [
            {"kind": trial.kind, "detail": trial.detail, "at_s": round(trial.began_s, 1), "seen": trial.problem}
            for trial in failures
        ],
        "cut_off": [trial.kind for trial in cut_off],
        "actions": len(actions),
        "ordered_actions": sum(action.ordered for action in actions),
        "reverts": sum(action.action_kind == REVERT for action in actions),
    }


def so_far(trials: Sequence[Trial], actions: Sequence[LoggedAction], differences: RowDifferences) -> str:
    """The result so far in one line, while a run continues."""
    survived = sum(trial.survived for trial in trials)
    return (
        f"so far: survived {survived} of {len(trials)}; {differences.rows:,} rows, {differences.lost} lost, "
        f"{differences.doubled} duplicated, {differences.misplaced} misplaced; "
        f"{len(unasked_actions(actions, trials))} unexpected actions"
    )


def unasked_actions(actions: Sequence[LoggedAction], trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Actions that are explained neither by a command of the benchmark nor by a fault, with their changes and the
    reason why they count.
    """
    objections = [(action, objection(action, trials)) for action in actions]
    return [_action_json(action, why, trials) for action, why in objections if why]


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


def _action_json(action: LoggedAction, why: str, trials: Sequence[Trial]) -> dict[str, Any]:
    before = [trial for trial in trials if trial.began_s <= action.seen_s]
    return {
        "id": action.id,
        "kind": action.action_kind,
        "causes": [change.cause for change in action.changes],
        "text": action.text,
        "values": dict(action.values),
        "retire": [executor for change in action.changes for executor in change.retire],
        "why": why,
        "after": before[-1].kind if before else "",
        "seconds_after": round(action.seen_s - before[-1].began_s, 1) if before else None,
    }
