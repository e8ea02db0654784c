"""Hot keys are spread over several instances. tests/diagnosers/test_hot_keys.py has it from symptom to action."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from homeostat.core.actions import ADJUST_SKEW, ALERT
from homeostat.core.causes import DATA_SKEW, UNDER_PROVISIONED
from homeostat.core.configuration import SPREAD, Capabilities, Knob
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.observation import NAN
from homeostat.resolvers.spread_keys import AdjustSkewResolver
from homeostat.testing import instances, observations, view_of
from support.stages import stage

SPREAD_OF_SPLIT = Knob(SPREAD, "split")
SHORT = Diagnosis(UNDER_PROVISIONED, "split")
HOT = Diagnosis(DATA_SKEW, "split")


def spreading(rows: Sequence[float], *diagnoses: Diagnosis, present: int = 1) -> list[Proposal]:
    tasks = {"lines": instances(100.0, 0.01), "split": instances(rows, [each / 100.0 for each in rows])}
    observed = observations(10, tasks, arrival_per_s=100.0)
    view = view_of(observed, values={SPREAD_OF_SPLIT: present})
    return list(AdjustSkewResolver().resolve(view, diagnoses or (HOT,)))


def test_hot_keys_are_spread_until_their_instance_is_like_the_others() -> None:
    """300 rows too many at one of 50, of which an instance may have a tenth of the mean of 106."""
    (proposal,) = spreading([400.0, *[100.0] * 49])

    assert proposal.kind == ADJUST_SKEW
    assert proposal.patch.values == {SPREAD_OF_SPLIT: 29}
    assert proposal.prediction is not None
    assert proposal.prediction.gain == pytest.approx(math.log(400.0 / (100.0 + 300.0 / 29)))
    assert proposal.benefit == pytest.approx(1.0 - (100.0 + 300.0 / 29) / 400.0)


def test_keys_are_spread_over_all_instances_at_most() -> None:
    (proposal,) = spreading([500.0, 100.0, 100.0, 100.0])

    assert proposal.patch.values == {SPREAD_OF_SPLIT: 4}
    assert proposal.prediction is not None
    assert proposal.prediction.gain == pytest.approx(math.log(500.0 / 200.0))


def test_a_spread_that_does_not_do_yet_is_widened() -> None:
    (proposal,) = spreading([250.0, 250.0, *[100.0] * 48], present=2)

    assert proposal.patch.values == {SPREAD_OF_SPLIT: 29}


@pytest.mark.parametrize(
    ("rows", "present"),
    [([100.0] * 4, 1), ([0.0] * 4, 1), ([NAN] * 4, 1), ([200.0, 200.0, 100.0, 100.0], 4), ([500.0], 1)],
)
def test_nothing_is_spread_that_is_even_unknown_or_spread_already(rows: list[float], present: int) -> None:
    assert spreading(rows, present=present) == []


def test_nothing_is_spread_for_another_cause() -> None:
    assert spreading([400.0, *[100.0] * 9], SHORT) == []


def test_an_engine_that_cannot_spread_keys_leads_to_an_alert() -> None:
    view = stage(100.0, instances([300.0, 100.0, 100.0], [3.0, 1.0, 1.0]))
    knobs = {knob: spec for knob, spec in view.capabilities.knobs.items() if knob.kind != SPREAD}

    (alert,) = AdjustSkewResolver().resolve(replace(view, capabilities=Capabilities(knobs)), (HOT,))
    assert (alert.kind, bool(alert.patch)) == (ALERT, False)
