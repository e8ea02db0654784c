"""The example plug-ins: each part alone, and all three in the loop, by dotted path and from Python."""

from __future__ import annotations

import sys

import pytest
from examples.own_plugins import OVERHEAD_BOUND, TINY_TASKS, FewerTasks, OverheadBound, TinyTasks, own_policy

from homeostat.core.configuration import PARALLELISM, Knob
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.policies import registry
from homeostat.sim.scenario import catalogue
from homeostat.sim.simulation import simulate
from homeostat.testing import (
    check_detector,
    check_diagnoser,
    check_policy,
    check_resolver,
    instances,
    observations,
    view_of,
)
from support.paths import ROOT

TASKS = {"lines": instances(500.0, 0.3, finish_s=0.3), "count": instances([5.0] * 100, 0.025, finish_s=1.3)}
BATCHES = observations(5, TASKS, executors=2, arrival_per_s=100.0, seconds=2.0, trigger_s=5.0)
TINY = view_of(BATCHES, values={Knob(PARALLELISM, "count"): 100})


def test_tiny_tasks_are_detected() -> None:
    (symptom,) = TinyTasks().detect(TINY)
    assert (symptom.kind, symptom.component) == (TINY_TASKS, "count")
    check_detector(TinyTasks())


def test_tiny_tasks_are_overhead() -> None:
    symptom = Symptom(TINY_TASKS, "count", severity=0.5)
    (diagnosis,) = OverheadBound().diagnose(TINY, [symptom])
    assert (diagnosis.cause, diagnosis.probability) == (OVERHEAD_BOUND, 0.75)
    check_diagnoser(OverheadBound(), [symptom])


def test_half_as_many_tasks_are_proposed() -> None:
    diagnosis = Diagnosis(OVERHEAD_BOUND, "count", probability=0.75)
    (proposal,) = FewerTasks().resolve(TINY, [diagnosis])
    assert proposal.patch.values == {Knob(PARALLELISM, "count"): 50}
    check_resolver(FewerTasks(), [diagnosis])


def test_named_in_the_toml_they_act_beside_the_default_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    scenario = catalogue.load("examples/own_policy.toml")
    result = simulate(scenario, registry.build(scenario.policy, scenario.settings))
    reasons = [action.because for action in result.trajectory]
    assert reasons[0] == f"{OVERHEAD_BOUND} at count"
    assert result.final_parallelism["count"] < 200
    assert result.as_json()["converged"]


def test_a_policy_of_ones_own_is_a_plain_object_given_in_python_or_by_dotted_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    check_policy(own_policy())
    scenario = catalogue.load(ROOT / "examples" / "own_policy.toml")
    by_path = simulate(scenario, registry.build("examples.own_plugins:own_policy"))
    in_python = simulate(scenario, own_policy())
    assert by_path.as_json()["trajectory"] == in_python.as_json()["trajectory"] != []
    assert "examples.own_plugins" in sys.modules
