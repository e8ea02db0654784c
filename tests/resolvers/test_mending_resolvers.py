"""What the default flavour proposes against slow instances and hot keys, and what it tells a person."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from homeostat.core.actions import ADJUST_SKEW, ALERT, REPLACE
from homeostat.core.causes import DATA_SKEW, EXTERNAL, INCONCLUSIVE, SLOW_INSTANCE, UNDER_PROVISIONED
from homeostat.core.configuration import SPREAD, Capabilities, Knob
from homeostat.core.evidence import Measured
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.observation import NAN
from homeostat.core.symptoms import SPEED_SKEW
from homeostat.core.view import View
from homeostat.detectors.instance_skew import LostWorkers, SlowWorkers
from homeostat.resolvers.alert import Alert
from homeostat.resolvers.replace_worker import ReplaceSlowResolver
from homeostat.resolvers.spread_keys import AdjustSkewResolver
from homeostat.testing import instances, observations, view_of
from support.stages import batches, stage

SPREAD_OF_SPLIT = Knob(SPREAD, "split")
SHORT = Diagnosis(UNDER_PROVISIONED, "split")


def slow(*workers: str, ratio: float | None = 3.0) -> Diagnosis:
    evidence = LostWorkers(1.0) if ratio is None else SlowWorkers(ratio)
    symptom = Symptom(SPEED_SKEW, "split", 0.6, evidence, (0,), workers)
    return Diagnosis(SLOW_INSTANCE, "split", symptoms=(symptom,), workers=workers)


def replacements(view: View, *diagnoses: Diagnosis) -> list[Proposal]:
    return list(ReplaceSlowResolver().resolve(view, diagnoses))


def test_a_slow_instance_is_replaced_and_the_gain_foretold() -> None:
    view = stage(120.0, instances([30.0] * 4, [0.9, 0.3, 0.3, 0.3]))

    (proposal,) = replacements(view, slow("split-0"))

    assert (proposal.kind, proposal.component) == (REPLACE, "split")
    assert proposal.patch.retire == {"split-0"}
    assert not proposal.patch.values
    assert not proposal.reversible
    assert proposal.prediction is not None
    assert proposal.prediction.gain == pytest.approx(math.log(3.0))
    assert proposal.prediction.touched == ("split",)
    assert proposal.benefit == pytest.approx(2.0 / 3.0)


@pytest.mark.parametrize(("total", "slow_ones", "replaced"), [(2, 2, 1), (3, 2, 1), (6, 4, 2), (12, 2, 2), (12, 12, 4)])
def test_at_most_a_third_is_replaced_at_once(total: int, slow_ones: int, replaced: int) -> None:
    (proposal,) = replacements(stage(100.0, total), slow(*(f"split-{i}" for i in range(slow_ones))))

    assert len(proposal.patch.retire) == replaced


def test_a_lost_worker_is_replaced() -> None:
    assert [set(p.patch.retire) for p in replacements(stage(100.0), slow("split-2", ratio=None))] == [{"split-2"}]


def test_nobody_is_replaced_for_another_cause_or_if_it_is_not_known_who() -> None:
    assert replacements(stage(100.0), slow(), SHORT, replace(SHORT, workers=("split-0",))) == []


def test_a_slow_executor_among_many_costs_a_batch_only_its_share() -> None:
    (proposal,) = replacements(batches(50.0), slow("exec-3"))

    assert proposal.prediction is not None
    assert 0.0 <= proposal.prediction.gain <= math.log(10.0 / (9.0 + 1.0 / 3.0))


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


def test_where_the_engine_cannot_spread_a_person_is_told() -> None:
    view = stage(100.0, instances([300.0, 100.0, 100.0], [3.0, 1.0, 1.0]))
    knobs = {knob: spec for knob, spec in view.capabilities.knobs.items() if knob.kind != SPREAD}

    (told,) = AdjustSkewResolver().resolve(replace(view, capabilities=Capabilities(knobs)), (HOT,))
    assert (told.kind, bool(told.patch)) == (ALERT, False)


def test_an_alert_says_what_is_wrong_where_and_what_to_do() -> None:
    alert = Alert(frozenset({EXTERNAL}))

    (proposal,) = alert.resolve(
        stage(100.0), (SHORT, Diagnosis(EXTERNAL, "split", evidence=Measured({"capacity_per_s": 12.0})))
    )

    assert proposal.kind == ALERT
    assert proposal.message.startswith("Something outside holds the application back at split (capacity 12 /s).")
    assert "What to do:" in proposal.message


@pytest.mark.parametrize(("stood_s", "told"), [(0.0, False), (299.0, False), (300.0, True)])
def test_what_cannot_be_told_is_reported_only_after_a_while(stood_s: float, told: bool) -> None:
    view = stage(100.0)
    standing = replace(view, standing_since_s={(INCONCLUSIVE, "split"): view.now_s - stood_s})

    assert bool(list(Alert().resolve(standing, (Diagnosis(INCONCLUSIVE, "split"),)))) is told
