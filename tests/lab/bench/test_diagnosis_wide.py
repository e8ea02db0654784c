"""Random runs of unusual applications."""

from __future__ import annotations

from homeostat.lab.bench.diagnosis import score
from homeostat.lab.bench.diagnosis_cases import CLEAN
from homeostat.lab.bench.diagnosis_wide import WIDE_KINDS, wide_cases
from homeostat.policies import registry
from homeostat.sim.scenario.spec import MicrobatchSpec
from homeostat.sim.truth_labels import Labels

RUNS = 200
CASES = list(wide_cases(RUNS, 1))


def test_the_same_seed_draws_the_same_run_and_another_one_another() -> None:
    assert list(wide_cases(3, 7)) == list(wide_cases(3, 7))
    assert next(wide_cases(1, 8)) == list(wide_cases(2, 7))[1]
    assert next(wide_cases(1, 7)) != next(wide_cases(1, 8))


def test_the_runs_reach_from_one_end_to_the_other() -> None:
    engines = [c.scenario.engine for c in CASES if isinstance(c.scenario.engine, MicrobatchSpec)]
    triggers, executors = [e.trigger_s for e in engines], [e.executors for e in engines]
    assert min(triggers) < 2.0
    assert max(triggers) > 200.0
    assert min(executors) == 2
    assert max(executors) > 50
    assert {len(c.kinds) for c in CASES} == {1, 2, 3}
    assert {kind for c in CASES for kind in c.kinds} == {CLEAN, *WIDE_KINDS}
    stages = {len(c.scenario.components) for c in CASES}
    assert min(stages) == 1
    assert max(stages) >= 6


def test_faults_begin_early_or_late_come_again_end_and_grow() -> None:
    faults = [(c, f) for c in CASES for f in c.scenario.faults if f.kind != "metric-gap"]
    quiet = [fault.at_s / case.trigger_s for case, fault in faults]
    assert min(quiet) < 15
    assert max(quiet) > 60
    assert any(fault.growth > 0 for _, fault in faults)
    ended = [(case, fault) for case, fault in faults if fault.until_s < case.scenario.duration_s]
    again = [
        case for case, fault in ended if any(f.kind == fault.kind and f is not fault for f in case.scenario.faults)
    ]
    assert again
    assert len(ended) > len(again)


def test_every_fault_is_a_cause_with_a_place() -> None:
    for case in CASES:
        causes = {label.fault.kind for label in Labels(case.scenario).all if label.fault is not None}
        assert causes == {kind for kind in case.kinds if kind not in (CLEAN, "more-load")}, case.scenario.name


def test_a_run_can_be_scored() -> None:
    case = next(case for case in CASES if case.kinds == ("slow-sink",))
    result = score(case, registry.build("provisioning"))
    assert not result.too_short
    assert result.right + result.missed
