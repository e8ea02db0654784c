"""Slow and lost workers are replaced, at most a third of them at once."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.core.actions import REPLACE
from homeostat.core.causes import SLOW_INSTANCE, UNDER_PROVISIONED
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.symptoms import SPEED_SKEW
from homeostat.core.view import View
from homeostat.detectors.instance_skew import LostWorkers, SlowWorkers
from homeostat.resolvers.replace_worker import ReplaceSlowResolver
from homeostat.testing import instances
from support.stages import batches, stage

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
