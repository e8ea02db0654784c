"""The numbers of the digests as columns, which grow with the history."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.digest import Digest
from homeostat.core.history import History, as_history
from homeostat.core.observation import StateSample
from homeostat.testing import instances, observations, view_of

DIGESTS = view_of(observations(6, lambda number: {"count": instances([10.0 * (number + 1)], [1.0])})).history


def grown(digests: tuple[Digest, ...], most: int = 100) -> History:
    history = History.of(())
    for digest in digests:
        history = history.after(digest, most)
    return history


def test_columns_hold_what_the_digests_say() -> None:
    history = grown(DIGESTS)
    assert tuple(history) == DIGESTS
    assert history.flow("at_s", 4).tolist() == [digest.at_s for digest in DIGESTS[-4:]]
    assert history.part("count", "rows", 9).tolist() == [digest.components["count"].rows for digest in DIGESTS]
    assert history.components == ("count",)
    assert history.operators == ()


def test_what_was_not_measured_is_unknown() -> None:
    history = grown((replace(DIGESTS[0], components={}), DIGESTS[1], replace(DIGESTS[2], components={})))
    rows = history.part("count", "rows", 3)
    assert np.isnan(rows).tolist() == [True, False, True]
    assert np.isnan(history.part("other", "rows", 2)).tolist() == [True, True]


def test_the_state_of_an_operator_is_in_the_columns_of_the_batches_that_report_it() -> None:
    states = {"dedup": StateSample("dedup", rows=7.0, snapshot_version=-1.0)}
    digests = (DIGESTS[0], replace(DIGESTS[1], states=states), DIGESTS[2], replace(DIGESTS[3], states=states))
    for history in (grown(digests), History.of(digests)):
        assert history.operators == ("dedup",)
        assert history.reports("dedup").tolist() == [1, 3]
        assert history.state("dedup", "rows", 2)[-1] == 7.0
        assert np.isnan(history.state("dedup", "rows", 4)).tolist() == [True, False, True, False]
        assert history.reports("other").tolist() == []


def test_two_histories_that_go_on_from_the_same_one_do_not_mix() -> None:
    common = grown(DIGESTS[:3])
    first, second = common.after(DIGESTS[3], 100), common.after(DIGESTS[5], 100)
    assert first.flow("at_s", 1)[0] == DIGESTS[3].at_s
    assert second.flow("at_s", 1)[0] == DIGESTS[5].at_s
    assert common.flow("at_s", 9).tolist() == [digest.at_s for digest in DIGESTS[:3]]


def test_the_oldest_are_forgotten_and_the_columns_do_not_grow_without_end() -> None:
    many = tuple(replace(DIGESTS[0], at_s=float(number)) for number in range(500))
    history = grown(many, most=3)
    assert history.flow("at_s", 9).tolist() == [497.0, 498.0, 499.0]
    assert history.part("count", "rows", 9).tolist() == [DIGESTS[0].components["count"].rows] * 3
    assert len(history._flows._lines[0]) < 100


def test_columns_cannot_be_changed() -> None:
    history = grown(DIGESTS)
    with pytest.raises(ValueError, match="read-only"):
        history.flow("at_s", 2)[0] = math.nan


def test_plain_digests_become_a_history_once() -> None:
    history = as_history(DIGESTS)
    assert as_history(history) is history
    assert history.flow("at_s", 6).tolist() == [digest.at_s for digest in DIGESTS]
