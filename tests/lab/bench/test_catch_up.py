"""`homeostat bench catchup`: what it makes of the runs, and one run of each kind."""

from __future__ import annotations

import math

import pytest

from homeostat.lab.bench import catch_up
from homeostat.lab.bench.catch_up import Admission, Clearing, admission_json, clearing_json
from homeostat.lab.bench.catch_up_cases import LOST_EXECUTOR, NOTHING, after_outage, draw_case, fitted


def clearing(took_s: float, best_s: float, *errors: float) -> Clearing:
    return Clearing(1, 600.0, 300.0, 4, took_s, best_s, {}, list(errors))


def test_ratios_and_errors_are_summed_up_over_the_outages() -> None:
    figures = clearing_json([clearing(290.0, 290.0, 0.2, 0.0), clearing(330.0, 300.0, 0.02), clearing(250.0, 200.0)])
    assert figures["over_best"]["median"] == pytest.approx(1.1)
    assert (figures["over_best"]["most"], figures["over_best"]["accepted"]) == (1.25, True)
    assert figures["within_objective"]["count"] == 2
    assert (figures["arrival_error"]["median"], figures["arrival_error"]["accepted"]) == (0.02, True)
    assert figures["first_arrival_error"]["count"] == 2


def test_a_rule_is_judged_by_its_batches_and_said_by_what_happened() -> None:
    runs = [Admission(1, NOTHING, "pid", [1.0] * 19 + [1.2]), Admission(1, LOST_EXECUTOR, "pid", [0.5, 1.0])]
    measured = admission_json(runs)["pid"]
    assert measured[NOTHING]["in_budget"]["share"] == 0.95
    assert measured[NOTHING]["accepted"]
    assert not measured["all"]["accepted"]
    many = admission_json([Admission(seed, NOTHING, "pid", [1.0] * 60) for seed in range(60)])["pid"]["all"]
    assert (many["over_budget"]["median"], many["over_budget"]["interval"]) == (1.0, None)
    assert (measured["all"]["late"]["count"], measured["all"]["in_budget_by_run"]["least"]) == (1, 0.5)


def test_a_case_is_the_same_every_time_and_waits_for_as_long_as_the_outage_took() -> None:
    case = draw_case(5)
    assert draw_case(5) == case
    engine = after_outage(case)
    model = fitted(case, engine)
    assert model is not None
    assert engine.now_s > case.back_s
    assert model.backlog_rows > 0.5 * case.outage_s * case.rate_per_s
    assert model.arrival_per_s == pytest.approx(case.rate_per_s, rel=0.1)
    assert all(spec.live for spec in model.capabilities.knobs.values())


def test_an_outage_is_worked_off_and_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "_LIMITS", (1.5, 64.0))
    monkeypatch.setattr(catch_up, "_TRIGGERS_S", (10.0,))
    run = catch_up.clear(3)
    assert run.best_s <= run.took_s < math.inf
    assert len(run.errors) > 10
    assert run.over_best < 2.0


@pytest.mark.parametrize("rule", catch_up.RULES)
def test_a_rule_keeps_batches_near_their_budget_as_long_as_nothing_happens(rule: str) -> None:
    ratios = catch_up.admit(3, NOTHING, rule).ratios
    assert len(ratios) > 10
    assert all(0.3 < ratio < 3.0 for ratio in ratios)
