"""Another number of partitions, from the keys in the state or by a guess, or an alert."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.core.actions import ADJUST_SKEW, ALERT
from homeostat.core.causes import HASH_IMBALANCE
from homeostat.core.configuration import EXECUTORS_KNOB, Capabilities, KnobSpec
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.view import View
from homeostat.resolvers.rebalance import RebalanceResolver
from support.uneven import EMPTY_ONES, ROW_S, STATE, TASK_S, view

KNOWN = {8: 4.0, 9: 1.02, 10: 2.1, 11: 1.05, 12: 1.01, 16: 4.0}


def proposals(snapshot: View) -> list[Proposal]:
    return list(RebalanceResolver().resolve(snapshot, [Diagnosis(HASH_IMBALANCE, "count", 0.9)]))


def test_the_number_of_partitions_comes_from_the_keys_and_fills_the_waves() -> None:
    (proposal,) = proposals(view(EMPTY_ONES, imbalance=KNOWN))

    assert (proposal.kind, dict(proposal.patch.values)) == (ADJUST_SKEW, {STATE: 12})
    assert proposal.prediction is not None
    assert "as its keys show" in proposal.prediction.text
    before_s = 1.1 + TASK_S + ROW_S * 800.0
    after_s = 1.1 + 3 * (TASK_S + ROW_S * 1600.0 / 12)
    assert proposal.prediction.gain == pytest.approx(math.log(before_s / after_s), rel=0.02)
    assert proposal.prediction.touched == ("count",)


def test_where_nobody_looked_a_prime_number_is_guessed_and_it_is_said_so() -> None:
    (proposal,) = proposals(view(EMPTY_ONES))

    (partitions,) = proposal.patch.values.values()
    assert partitions in (11, 19, 23, 31)
    assert proposal.prediction is not None
    assert "a guess" in proposal.prediction.text


def test_nothing_is_guessed_while_somebody_looks() -> None:
    assert proposals(view(EMPTY_ONES, imbalance={})) == []


def test_a_number_out_of_bounds_is_not_proposed() -> None:
    (proposal,) = proposals(view(EMPTY_ONES, imbalance=KNOWN, spec=KnobSpec(1, 11, live=False)))
    assert proposal.patch.values[STATE] <= 11


def test_where_no_number_would_help_an_alert_says_so() -> None:
    (proposal,) = proposals(view(EMPTY_ONES, imbalance={n: n / 2 for n in range(4, 20)}))

    assert proposal.kind == ALERT
    assert "no number of partitions" in proposal.message


def test_where_the_number_cannot_be_changed_an_alert_says_why() -> None:
    snapshot = view(EMPTY_ONES, imbalance=KNOWN)
    notes = {"main: state partitions": "only the state of the RocksDB provider can be repartitioned"}
    fixed = Capabilities({EXECUTORS_KNOB: KnobSpec(1, 100, cost=1.0)}, notes=notes)

    (proposal,) = proposals(replace(snapshot, capabilities=fixed))

    assert proposal.kind == ALERT
    assert proposal.message.startswith("Many keys fall on a few partitions at count")
    assert "only the state of the RocksDB provider" in proposal.message
