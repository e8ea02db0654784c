"""The models that turn measurements into probabilities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.errors import ConfigError
from homeostat.core.evidence import LostTime
from homeostat.core.time_causes import SINK_BOUND
from homeostat.diagnosers.strengths import (
    FEATURES,
    Features,
    OwnModel,
    features_of,
    read_strengths,
    shipped_strengths,
)


def evidence(lost_s: float = 6.0, batch_s: float = 8.0, trigger_s: float | None = 10.0, **others: float) -> LostTime:
    return LostTime(SINK_BOUND, lost_s, batch_s, lost_s / (trigger_s or batch_s), trigger_s, **others)  # type: ignore[arg-type]


def probability(lost_time: LostTime) -> float:
    return shipped_strengths().probability(lost_time.cause, features_of(lost_time, lost_time.lost_s))


def test_a_larger_and_a_longer_loss_is_surer() -> None:
    assert probability(evidence(4.0, batches_in_a_row=6)) > probability(evidence(2.0, batches_in_a_row=6))
    assert probability(evidence(2.0, batches_in_a_row=6)) > probability(evidence(2.0, batches_in_a_row=3))


@given(st.floats(0.0, 1e4), st.floats(0.0, 1e4), st.one_of(st.none(), st.floats(0.01, 1e4)), st.floats(0.0, 1e4))
def test_a_probability_is_one_whatever_was_measured(
    lost_s: float, batch_s: float, trigger_s: float | None, usual_s: float
) -> None:
    lost_time = LostTime(SINK_BOUND, lost_s, batch_s, 0.5, trigger_s, usual_s)
    assert 0.0 <= probability(lost_time) < 1.0


def test_a_table_of_another_version_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match="other features"):
        read_strengths({"version": 99, "features": list(FEATURES), "causes": {}}, "table.json")
    with pytest.raises(ConfigError, match="ships with this version"):
        read_strengths({"version": 1, "features": ["other"], "causes": {}}, "table.json")


@dataclass(frozen=True)
class Mine:
    answer: Any

    def probability(self, cause: str, features: Features) -> float:
        return self.answer  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("answer", "counts"), [(0.25, True), (1.0, True), (1.5, False), (float("nan"), False), ("x", False)]
)
def test_a_model_of_the_users_own_counts_where_it_answers_with_a_probability(answer: Any, counts: bool) -> None:
    features = features_of(evidence(), 6.0)
    shipped = shipped_strengths()
    mine = replace(shipped, own={SINK_BOUND: OwnModel("mine:model", Mine(answer))})
    expected = min(0.99, answer) if counts else shipped.probability(SINK_BOUND, features)
    assert mine.probability(SINK_BOUND, features) == expected
    assert mine.probability("other", features) == shipped.probability("other", features)


def test_a_table_that_names_a_model_needs_someone_to_load_it() -> None:
    strength = {"intercept": 0.0, "weights": [0.0] * len(FEATURES)}
    table = {"version": 1, "features": list(FEATURES), "causes": {"": strength}, "own": {SINK_BOUND: "mine:model"}}
    with pytest.raises(ConfigError, match="cannot be loaded here"):
        read_strengths(table, "table.json")
    assert read_strengths(table, "table.json", lambda path: Mine(0.1)).own[SINK_BOUND].path == "mine:model"
