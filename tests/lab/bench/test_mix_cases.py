"""The runs of `homeostat bench mixes`: what they contain, and that a seed always draws the same one."""

from __future__ import annotations

import pytest

from homeostat.lab.bench import mix_cases
from homeostat.lab.bench.mix_cases import DATAFLOW, ENGINES, KINDS, MICROBATCH, draw_case, mixes
from homeostat.sim.simulation import build_engine


def test_all_pairs_and_triples_that_an_engine_can_have() -> None:
    assert len(mixes(MICROBATCH)) == 21 + 35
    assert len(mixes(DATAFLOW)) == 15 + 20


@pytest.mark.parametrize("engine", ENGINES)
def test_every_trouble_can_be_drawn_and_simulated(engine: str) -> None:
    kinds = tuple(kind for kind in KINDS if kind not in mix_cases.MISSING[engine])
    for seed in range(3):
        case = draw_case(engine, kinds, seed)
        assert case == draw_case(engine, kinds, seed)
        assert len(case.scenario.faults) + len(case.scenario.workload.spikes) == len(kinds)
        assert case.first_s >= mix_cases.QUIET_S
        simulated = build_engine(case.scenario)
        simulated.wait(case.first_s)
        assert all(sample.healthy for sample in simulated.truth)


def test_troubles_begin_at_the_same_moment_or_shortly_after_each_other() -> None:
    apart_s = [max(c.begins_s) - min(c.begins_s) for c in (draw_case(MICROBATCH, KINDS, seed) for seed in range(20))]
    assert min(apart_s) == 0.0
    assert 0.0 < max(apart_s) <= 70.0
