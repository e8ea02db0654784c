"""Why is nothing happening? The first thing that is missing, in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from homeostat.store.present import Present
from homeostat.web.conditions import answer, conditions

HEALTHY = {"health": "healthy", "reason": "it keeps up"}
BEHIND = {"health": "falling behind", "reason": "many rows wait"}
STOPPED = {"health": "not running", "reason": "no news for 3 h"}
DIAGNOSED = [{"id": "d-1", "what": "under-provisioned", "component": "count"}]


@pytest.mark.parametrize(
    ("summary", "present", "told"),
    [
        (STOPPED, {}, "No news for 3 h."),
        (HEALTHY, {"mode": "regulate"}, "Nothing needs to happen: no diagnosis stands."),
        (BEHIND, {"mode": "regulate"}, "No diagnosis stands."),
        (
            BEHIND,
            {"mode": "regulate", "symptoms": [{"id": "s-1", "what": "pressure"}]},
            "Seen, but not yet explained: pressure.",
        ),
        (BEHIND, {"mode": "observe", "diagnoses": DIAGNOSED}, "Mode observe: it only watches."),
        (
            BEHIND,
            {"mode": "earn", "earned": 1, "diagnoses": DIAGNOSED},
            "Mode earn: 1 of 3 pieces of advice proved right.",
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
            "Nothing stands in the way: the loop acts when a resolver proposes something.",
        ),
    ],
)
def test_the_answer(summary: dict[str, str], present: dict[str, Any], told: str) -> None:
    assert answer(summary, conditions(summary, Present.from_json(present))) == told
