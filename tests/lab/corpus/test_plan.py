"""The plan draws each run from its seed, names it by its case, and groups runs by session."""

from __future__ import annotations

import pytest

from homeostat.core.causes import declared_causes
from homeostat.core.errors import ConfigError
from homeostat.lab.corpus.faults import FAULTS
from homeostat.lab.corpus.jobs import JOBS
from homeostat.lab.corpus.plan import CASES, LENGTH_S, by_session, planned_runs


def test_the_same_seed_plans_the_same_runs() -> None:
    assert planned_runs([], 2, 1) == planned_runs([], 2, 1)
    assert planned_runs([], 2, 1) != planned_runs([], 2, 2)


def test_each_case_has_a_job_and_faults_that_exist_and_a_name_of_its_own() -> None:
    for case in CASES:
        assert case.job in JOBS
        assert set(case.faults) <= set(FAULTS)
    assert len({case.name for case in CASES}) == len(CASES)
    assert {kind.cause for kind in FAULTS.values()} <= {cause.name for cause in declared_causes()}


def test_each_job_is_also_recorded_without_a_fault() -> None:
    assert {case.job for case in CASES if not case.faults} == {case.job for case in CASES}


def test_strength_and_times_are_within_the_case() -> None:
    for run in planned_runs([], 5, 3):
        for fault in run.faults:
            weakest, strongest = run.case.faults[fault.kind]
            assert weakest * 0.9 <= fault.strength <= strongest * 1.1
            assert 0 <= fault.at_s < fault.until_s <= LENGTH_S
            assert fault.at_s == 0 or not FAULTS[fault.kind].from_start


def test_clean_runs_come_before_those_they_are_compared_with() -> None:
    for _, runs in by_session(planned_runs([], 2, 1)):
        clean = [not run.faults for run in runs]
        assert clean == sorted(clean, reverse=True)


def test_runs_are_chosen_by_job_fault_case_or_clean() -> None:
    assert {run.case.job for run in planned_runs(["keyed"], 1, 1)} == {"keyed"}
    assert {run.name for run in planned_runs(["service-slow-service"], 2, 1)} == {
        "service-slow-service-1",
        "service-slow-service-2",
    }
    assert not any(run.faults for run in planned_runs(["clean"], 1, 1))
    with pytest.raises(ConfigError, match="unknown job, fault or case 'coffee'"):
        planned_runs(["coffee"], 1, 1)
