"""Causes that lie outside: a person hears of each at once, and no action is taken."""

from __future__ import annotations

from homeostat.core.cause_registry import cause_of
from homeostat.core.source_causes import SOURCE_CAUSES


def test_a_person_hears_of_each_at_once_and_reads_what_to_do() -> None:
    for name in SOURCE_CAUSES:
        cause = cause_of(name)
        assert cause.alerts
        assert not cause.alert_after_patience
        assert not cause.mended_by
        assert not cause.workers_help
        assert cause.advice
