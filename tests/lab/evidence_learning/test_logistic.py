"""Logistic regression with a prior."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.lab.evidence_learning.logistic import fit, log_loss, probabilities

TRUE = np.array([-1.0, 2.0, -0.5])


def drawn(count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    rows = random.normal(size=(count, 2))
    return rows, (random.random(count) < probabilities(rows, TRUE)).astype(float)


def test_the_weights_that_made_the_examples_are_found() -> None:
    assert fit(*drawn(20_000), np.zeros(3), 0.1) == pytest.approx(TRUE, abs=0.1)


def test_without_examples_the_prior_remains_and_few_move_it_a_little() -> None:
    prior = np.array([0.5, 1.0, 0.0])
    assert fit(np.zeros((0, 2)), np.zeros(0), prior, 1.0) == pytest.approx(prior)
    rows, right = drawn(5)
    assert np.abs(fit(rows, right, prior, 100.0) - prior).max() < 0.05


def test_examples_that_a_line_divides_do_not_make_the_weights_run_away() -> None:
    rows = np.array([[-1.0], [-0.5], [0.5], [1.0]])
    weights = fit(rows, np.array([0.0, 0.0, 1.0, 1.0]), np.zeros(2), 0.1)
    assert np.isfinite(weights).all()
    assert probabilities(rows, weights)[3] > 0.9


def test_the_loss_of_a_coin_is_ln_2_and_of_the_truth_nothing() -> None:
    right = np.array([1.0, 0.0])
    assert log_loss(np.array([0.5, 0.5]), right) == pytest.approx(np.log(2.0))
    assert log_loss(right, right) == pytest.approx(0.0, abs=1e-5)
