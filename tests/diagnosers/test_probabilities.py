"""Probabilities are ordered by how much the evidence says, and rise with what is measured."""

from __future__ import annotations

import pytest

from homeostat.diagnosers import probabilities as p


def test_stronger_evidence_has_a_higher_probability() -> None:
    order = [p.NO_SIGN, p.NOT_MEASURED, p.EVEN_ODDS, p.FITS, p.BY_ELIMINATION, p.EFFECT_SHOWN, p.SHOWN, p.REPORTED]
    assert order == sorted(set(order))


def test_sureness_is_even_at_the_middle_and_stays_between_no_sign_and_reported() -> None:
    assert p.sureness(1.5, 1.5, 0.4) == p.EVEN_ODDS
    assert p.sureness(100.0, 1.5, 0.4) == pytest.approx(p.REPORTED)
    assert p.sureness(-100.0, 1.5, 0.4) == pytest.approx(p.NO_SIGN)


def test_a_smaller_width_is_sure_sooner() -> None:
    assert p.sureness(1.6, 1.5, 0.1) > p.sureness(1.6, 1.5, 0.4) > p.EVEN_ODDS
