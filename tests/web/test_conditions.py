"""Why is nothing happening? The first thing that is missing, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from homeostat.store.present import Present
from homeostat.web.conditions import answer, conditions
from homeostat.web.summary import RunSummary

HEALTHY = ("healthy", "The query keeps up with the load.")
BEHIND = ("falling behind", "Many rows wait.")
STOPPED = ("not running", "No new records for 3 h.")
DIAGNOSED = [{"id": "d-1", "what": "under-provisioned", "component": "count"}]


def summary_of(health: str, reason: str) -> RunSummary:
    return RunSummary("app/q", "app", "q", health, reason, "", "", {}, 0.0, 0.0, {}, {}, (), (), (), (), ())


@pytest.mark.parametrize(
    ("summary", "present", "sentence"),
    [
        (STOPPED, {}, "No new records for 3 h."),
        (HEALTHY, {"mode": "regulate"}, "There is nothing to do. No problem is diagnosed."),
        (BEHIND, {"mode": "regulate"}, "No problem is diagnosed."),
        (
            BEHIND,
            {"mode": "regulate", "symptoms": [{"id": "s-1", "what": "pressure"}]},
            "There are symptoms, but no diagnosis yet: pressure.",
        ),
        (BEHIND, {"mode": "observe", "diagnoses": DIAGNOSED}, "The mode is observe: Homeostat only watches."),
        (
            BEHIND,
            {"mode": "earn", "earned": 1, "diagnoses": DIAGNOSED},
            "The mode is earn: 1 of 3 pieces of advice have proved right.",
        ),
        (BEHIND, {"mode": "regulate", "paused": "paused by alice", "diagnoses": DIAGNOSED}, "Paused by alice."),
        (
            BEHIND,
            {
                "mode": "regulate",
                "diagnoses": DIAGNOSED,
                "active": [{"id": "a-1", "text": "", "state": "being judged"}],
            },
            "a-1 is being judged.",
        ),
        (
            BEHIND,
            {"mode": "regulate", "diagnoses": DIAGNOSED, "conditions": ["scale-up count: cool-down: another 30 s"]},
            "Scale-up count: cool-down: another 30 s.",
        ),
        (
            BEHIND,
            {"mode": "earn", "earned": 3, "diagnoses": DIAGNOSED},
            "The loop acts as soon as a resolver proposes something.",
        ),
    ],
)
def test_the_answer(summary: tuple[str, str], present: dict[str, Any], sentence: str) -> None:
    about = summary_of(*summary)
    assert answer(about, conditions(about, Present.from_json(present))) == sentence
