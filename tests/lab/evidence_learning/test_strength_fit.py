"""The fitted table is kept only where it is better on runs that it was not fitted on."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.time_causes import CHECKPOINT_BOUND, SINK_BOUND
from homeostat.diagnosers.strengths import Features, OwnModel, Strength, Strengths, read_strengths
from homeostat.lab.evidence_learning.examples import Example
from homeostat.lab.evidence_learning.strength_fit import as_table, learned

IN_USE = Strengths({}, Strength(-5.0, (3.0, 8.0, 0.5, 1.5, 2.0, -1.5, 1.0)))
NONE = Features(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def features(of_batch: float) -> Features:
    return Features(0.3, of_batch, 0.0, 0.0, 1.0, 0.0, 1.0)


def examples(cause: str, runs: int, *, by_chance: bool = False) -> list[Example]:
    """In each run four batches, in which the cause is there if it takes most of the batch, or else by chance."""
    random = np.random.default_rng(5)
    cases = []
    for run in range(runs):
        for _ in range(4):
            of_batch = float(random.random())
            right = random.random() < 0.5 if by_chance else of_batch > 0.7
            cases.append(Example(f"{cause}-{run}", cause, features(of_batch), bool(right)))
    return cases


def test_a_cause_that_the_table_in_use_is_wrong_about_gets_a_model_of_its_own() -> None:
    strengths, comparisons = learned(examples(SINK_BOUND, 60), IN_USE)
    sink = next(each for each in comparisons if each.cause == SINK_BOUND)
    assert sink.kept
    assert sink.loss_fitted < sink.loss_in_use
    assert (
        strengths.probability(SINK_BOUND, features(0.9)) > 0.8 > 0.2 > strengths.probability(SINK_BOUND, features(0.4))
    )


def test_a_cause_with_few_runs_keeps_the_table_in_use() -> None:
    few = examples(CHECKPOINT_BOUND, 3, by_chance=True)
    strengths, comparisons = learned([*examples(SINK_BOUND, 60), *few], IN_USE)
    assert not next(each for each in comparisons if each.cause == CHECKPOINT_BOUND).kept
    assert CHECKPOINT_BOUND not in strengths.causes


def test_a_written_table_is_read_back() -> None:
    strengths, _ = learned(examples(SINK_BOUND, 60), IN_USE)
    again = read_strengths(as_table(strengths), "here")
    for each in (features(0.2), features(0.9), NONE):
        assert abs(again.probability(SINK_BOUND, each) - strengths.probability(SINK_BOUND, each)) < 0.01


class Oracle:
    """Right about one cause, and wrong about every other one."""

    name = "oracle"

    def probability(self, cause: str, features: Features) -> float:
        right = features.of_batch > 0.7
        return 0.98 if right == (cause == SINK_BOUND) else 0.02


class Broken:
    name = "broken"

    def probability(self, cause: str, features: Features) -> float:
        raise RuntimeError("no such file")


def test_a_model_of_the_users_own_is_used_only_where_it_beats_the_others_on_held_back_runs() -> None:
    own = OwnModel("mine:model", Oracle())
    both = [*examples(SINK_BOUND, 60), *examples(CHECKPOINT_BOUND, 60)]
    strengths, comparisons = learned(both, IN_USE, own)
    figures = {each.cause: each for each in comparisons}
    assert figures[SINK_BOUND].own_kept
    assert figures[SINK_BOUND].loss_own < figures[SINK_BOUND].loss_fitted
    assert not figures[CHECKPOINT_BOUND].own_kept
    assert strengths.own == {SINK_BOUND: own}
    table = as_table(strengths)
    assert table["own"] == {SINK_BOUND: "mine:model"}
    again = read_strengths(table, "here", lambda path: Oracle())
    assert again.probability(SINK_BOUND, features(0.1)) == 0.02
    assert again.probability(CHECKPOINT_BOUND, features(0.1)) == pytest.approx(
        strengths.causes[CHECKPOINT_BOUND].probability(features(0.1)), abs=0.01
    )


def test_a_model_of_the_users_own_that_knows_few_runs_or_fails_is_not_used() -> None:
    few, _ = learned(examples(SINK_BOUND, 7), IN_USE, OwnModel("mine:model", Oracle()))
    broken, comparisons = learned(examples(SINK_BOUND, 60), IN_USE, OwnModel("mine:model", Broken()))
    assert few.own == broken.own == {}
    assert comparisons[1].loss_own == comparisons[1].loss_in_use, "the table answers for it"
    assert "own" not in as_table(broken)
