"""Acting now against waiting for one more batch."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.arbiter import RankedArbiter, Refusal
from homeostat.core.configuration import EXECUTORS_KNOB, PARALLELISM, Capabilities, Knob, KnobSpec, Patch
from homeostat.core.evidence import Evidence, LostTime
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.guards import GuardContext
from homeostat.core.time_causes import SPILLING
from homeostat.core.waiting import Stakes, stakes
from homeostat.testing import instances, observations, view_of

PARTITIONS = Knob(PARALLELISM, "count")
SEEN = 10
TASKS = {"read": instances([100.0] * 4, 1.0, finish_s=1.0), "count": instances([100.0] * 4, 1.0, finish_s=1.0)}
VIEW = view_of(
    observations(SEEN, TASKS, executors=4, seconds=8.0, trigger_s=10.0),
    values={PARTITIONS: 4},
    capabilities=Capabilities({PARTITIONS: KnobSpec(live=False, apply_s=30.0), EXECUTORS_KNOB: KnobSpec(apply_s=30.0)}),
)
probabilities, seconds = st.floats(0.01, 0.99), st.floats(0.01, 100.0)
all_stakes = st.builds(Stakes, probabilities, seconds, st.floats(0.0, 1000.0), st.integers(1, 50))


@dataclass(frozen=True, slots=True)
class NoLoss(Evidence):
    """Evidence that does not say what could be won."""


def context(since_s: float = VIEW.now_s) -> GuardContext:
    return GuardContext(VIEW, standing_since_s={(SPILLING, "count"): since_s})


def proposal(
    probability: float = 0.8, knob: Knob = PARTITIONS, evidence: Evidence | None = None, reversible: bool = True
) -> Proposal:
    lost = LostTime(SPILLING, 2.0, 8.0, 0.2) if evidence is None else evidence
    because = (Diagnosis(SPILLING, "count", probability, lost),)
    return Proposal("retune", because, Patch({knob: 8}), "count", reversible=reversible)


def choice(wish: Proposal, where: GuardContext) -> list[str]:
    result = RankedArbiter(0.6, 300.0).choose([wish], where, lambda each: 0.5, lambda each: each)
    return [str(refusal) for _, refusal in result.rejected]


@given(all_stakes, probabilities)
def test_who_is_surer_never_waits_where_the_less_sure_acts(now: Stakes, probability: float) -> None:
    surer = Stakes(max(now.probability, probability), now.gain_s, now.wrong_s, now.batches)
    assert now.should_wait or not surer.should_wait


@given(all_stakes, st.floats(1.0, 10.0), st.integers(1, 50))
def test_more_to_win_and_more_batches_never_make_it_wait(now: Stakes, times: float, more: int) -> None:
    assert now.should_wait or not Stakes(now.probability, times * now.gain_s, now.wrong_s, now.batches).should_wait
    assert now.should_wait or not Stakes(now.probability, now.gain_s, now.wrong_s, now.batches + more).should_wait


@given(all_stakes)
def test_waiting_ends(now: Stakes) -> None:
    enough = int(now.wrong_s / now.waiting_s) + 1
    assert not Stakes(now.probability, now.gain_s, now.wrong_s, enough).should_wait


def test_a_restart_that_may_be_wrong_waits_until_enough_batches_agree() -> None:
    at_first = stakes(proposal(), context())
    assert at_first == Stakes(0.8, 2.0, 60.0, 3)
    assert at_first.waiting_s == pytest.approx(1.6)
    assert at_first.acting_s == pytest.approx(3.0)
    (refusal,) = choice(proposal(), context())
    assert refusal == str(Refusal("waiting for one more batch", at_first.summary()))
    assert choice(proposal(), context(VIEW.now_s - 40.0)) == [], "after four more batches"


def test_who_is_sure_or_can_change_it_without_a_pause_or_cannot_take_it_back_acts_sooner() -> None:
    assert choice(proposal(0.9), context()) == []
    assert choice(proposal(0.7, EXECUTORS_KNOB), context()) == []
    assert choice(proposal(reversible=False), context()) == []


def test_where_the_recoverable_time_is_not_known_the_threshold_decides() -> None:
    assert stakes(proposal(evidence=NoLoss()), context()) is None
    assert choice(proposal(0.61, evidence=NoLoss()), context()) == []


def test_below_the_threshold_nothing_is_weighed() -> None:
    assert choice(proposal(0.59, EXECUTORS_KNOB), context()) == ["gathering evidence: probability 0.59 is below 0.60"]


def test_after_the_patience_it_is_tried_anyway() -> None:
    long_ago = GuardContext(VIEW, standing_since_s={(SPILLING, "count"): VIEW.now_s - 301.0})
    dear = LostTime(SPILLING, 0.01, 8.0, 0.2)
    assert choice(proposal(evidence=dear), context()) != []
    assert choice(proposal(evidence=dear), long_ago) == []
