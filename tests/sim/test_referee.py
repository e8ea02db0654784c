"""Which actions count as needless, by what was true in the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pytest

from homeostat.core.actions import SCALE_UP
from homeostat.core.configuration import EXECUTORS_KNOB, PARALLELISM, Knob, Patch
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.policy_definition import Policy
from homeostat.core.view import View
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, FaultSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import simulate
from support.troubled_runs import with_faults

AT_S = 300.0


@dataclass(frozen=True)
class GrowsOnce:
    """Grows a component at a given time, whatever it sees."""

    component: str
    to: int
    knob: Knob | None = None
    name: str = "grows-once"

    def detect(self, view: View) -> Iterable[Symptom]:
        return [Symptom("wish", self.component)] if view.now_s >= AT_S else []

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        return [Diagnosis("wish", s.component, 0.9) for s in symptoms]

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        knob = self.knob or Knob(PARALLELISM, self.component)
        if view.configuration[knob] < self.to:
            for diagnosis in diagnoses:
                yield Proposal(SCALE_UP, (diagnosis,), Patch({knob: self.to}), self.component)


def needless(load_per_s: float, *faults: FaultSpec, sigma: float = 0.0, component: str = "count") -> list[bool]:
    """Growing from four instances, which take 400 /s."""
    scenario = Scenario(
        "steady",
        "",
        DataflowSpec(),
        900.0,
        (
            ComponentSpec("lines", "source", rate_per_s=10_000.0),
            ComponentSpec("split", inputs=("lines",), parallelism=4, rate_per_s=100.0),
            ComponentSpec("count", inputs=("split",), parallelism=4, rate_per_s=100.0, keyed=True, keys=100_000),
        ),
        WorkloadSpec(rate_per_s=load_per_s, noise=Noise(sigma)),
        faults=faults,
    )
    grows = GrowsOnce(component, 8)
    result = simulate(scenario, Policy("grows", (grows,), (grows,), (grows,)))
    return [taken.needless for taken in result.trajectory]


def test_a_growth_is_needless_where_the_load_fits_already() -> None:
    assert needless(200.0, component="split") == [True]


def test_a_growth_of_what_is_too_small_is_not() -> None:
    assert needless(600.0, component="split") == [False]


def test_room_for_the_upswings_of_noise_is_not_needless() -> None:
    assert needless(340.0, component="split") == [True]
    assert needless(340.0, sigma=0.15, component="split") == [False]
    assert needless(100.0, sigma=0.15, component="split") == [True]


@pytest.mark.parametrize(
    ("fault", "excused"),
    [
        (FaultSpec("slow-instance", component="count", factor=4.0), True),
        (FaultSpec("slow-instance", component="split", factor=4.0), False),
        (FaultSpec("hot-key", component="count", share=0.6), True),
        (FaultSpec("stuck-sink"), True),
        (FaultSpec("metric-gap", share=0.1), False),
        (FaultSpec("garbage-metrics", component="count", share=0.1), False),
    ],
)
def test_only_a_fault_that_takes_capacity_from_what_grows_is_an_excuse(fault: FaultSpec, excused: bool) -> None:
    assert needless(200.0, replace(fault, at_s=60.0)) == [not excused]


def test_a_fault_that_is_over_is_no_excuse() -> None:
    assert needless(200.0, FaultSpec("hot-key", at_s=60.0, until_s=120.0, component="count", share=0.6)) == [True]


def executors_were_needless(*faults: FaultSpec, executors: int, to: int) -> bool:
    """Whether it was needless to add executors that process the load, but cannot do what the fault prevents."""
    scenario = replace(with_faults(*faults, executors=executors), duration_s=900.0)
    grows = GrowsOnce("count", to, EXECUTORS_KNOB)
    (action,) = simulate(scenario, Policy("grows", (grows,), (grows,), (grows,))).trajectory
    return action.needless


def test_executors_do_not_help_against_a_sink_that_is_slower_than_the_trigger() -> None:
    assert executors_were_needless(FaultSpec("slow-sink", seconds=12.0), executors=8, to=16)
    assert executors_were_needless(FaultSpec("slow-commit", seconds=12.0), executors=8, to=16)


def test_executors_help_against_what_slows_all_tasks() -> None:
    assert not executors_were_needless(FaultSpec("outside-system", row_s=0.02), executors=4, to=8)
