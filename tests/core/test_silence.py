"""No measurements, and batches that do not end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.causes import EXTERNAL, INCONCLUSIVE
from homeostat.core.effects import Effects
from homeostat.core.events import UnderWay
from homeostat.core.loop_state import State
from homeostat.core.silence import SilenceWatch, notice
from homeostat.core.symptoms import STUCK_BATCH, UNKNOWN
from homeostat.testing import instances, observations, view_of

LAST_S = 50.0
STATE = State(history=view_of(observations(5, {"lines": instances(1.0, 1.0)})).history)


def running(since_s: float, at_s: float) -> State:
    return replace(STATE, under_way=UnderWay("run", 5, since_s, at_s, "lines", 1, 4))


@pytest.mark.parametrize(("quiet_s", "kind"), [(59.0, None), (61.0, UNKNOWN)])
def test_silence_is_a_symptom_after_a_minute_of_short_intervals(quiet_s: float, kind: str | None) -> None:
    symptom = SilenceWatch().detect(STATE, LAST_S + quiet_s)

    assert (symptom.kind if symptom is not None else None) == kind


def test_long_intervals_are_waited_for() -> None:
    slow = replace(STATE, history=tuple(replace(digest, span_s=100.0) for digest in STATE.history))

    assert SilenceWatch().detect(slow, LAST_S + 299.0) is None
    assert SilenceWatch().detect(slow, LAST_S + 301.0) is not None


def test_nothing_is_missing_before_the_first_observation() -> None:
    assert SilenceWatch().detect(State(), 1e6) is None


def test_a_batch_that_runs_is_stuck_after_ten_times_the_last_one() -> None:
    watch = SilenceWatch()

    assert watch.detect(running(LAST_S, LAST_S + 95.0), LAST_S + 99.0) is None
    symptom = watch.detect(running(LAST_S, LAST_S + 100.0), LAST_S + 101.0)

    assert symptom is not None
    assert (symptom.kind, symptom.component) == (STUCK_BATCH, "lines")
    assert watch.diagnose(symptom).cause == EXTERNAL


def test_a_person_is_alerted_once_and_the_end_is_recorded() -> None:
    begins = Effects({}, LAST_S + 61.0)
    state = notice(STATE, begins)
    goes_on = Effects(begins.numbers, LAST_S + 70.0)
    state = notice(state, goes_on)
    ends = Effects(goes_on.numbers, LAST_S + 1.0)
    state = notice(state, ends)

    assert [record.kind for record in begins.records] == ["symptom", "diagnosis", "alert"]
    assert [command.title for command in begins.commands if hasattr(command, "title")] == [INCONCLUSIVE]
    assert goes_on.records == ()
    assert [record.text for record in ends.records] == ["measurements arrive again"]
    assert not state.silent
