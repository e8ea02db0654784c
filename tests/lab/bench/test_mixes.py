"""`homeostat bench mixes`: what it makes of the runs."""

from __future__ import annotations

import pytest

from homeostat.lab.bench import mixes
from homeostat.lab.bench.mix_cases import DATAFLOW
from homeostat.lab.bench.mixes import ORACLE, OURS, Run, engine_json


def run(policy: str, unhealthy_s: float, *, seed: int = 1, plans: int = 1, false_remedies: int = 0) -> Run:
    return Run(DATAFLOW, "mix", seed, policy, unhealthy_s, plans, plans, false_remedies=false_remedies)


def test_ratios_are_to_the_oracle_on_the_same_run() -> None:
    runs = [run(OURS, 60.0), run(ORACLE, 40.0), run(OURS, 50.0, seed=2), run(ORACLE, 100.0, seed=2)]
    figures = engine_json(runs)["all"][OURS]
    assert figures["over_oracle"] == {"median": 1.0, "worst": 1.5}
    assert figures["accepted"]


def test_one_batch_is_the_least_of_the_oracle_that_counts() -> None:
    figures = engine_json([run(OURS, 20.0), run(ORACLE, 0.0)])["all"][OURS]
    assert figures["over_oracle"]["worst"] == 2.0


@pytest.mark.parametrize(
    "bad", [run(OURS, 130.0), run(OURS, 40.0, plans=3), run(OURS, 40.0, false_remedies=1)], ids=lambda r: str(r.plans)
)
def test_slow_many_or_false_actions_are_not_accepted(bad: Run) -> None:
    assert not engine_json([bad, run(ORACLE, 40.0)])["all"][OURS]["accepted"]


@pytest.mark.slow
def test_a_mix_is_measured_under_every_policy() -> None:
    measured = mixes.measure(seeds=1, first_seed=1, engines=[DATAFLOW], mix=[("doubled-load", "hot-key")])
    figures = measured["engines"][DATAFLOW]
    assert set(figures["mixes"]["hot-key + doubled-load"]) == set(mixes.POLICIES)
    assert len(figures["runs"]) == len(mixes.POLICIES)
