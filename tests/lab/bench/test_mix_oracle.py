"""The oracle of `homeostat bench mixes` knows the causes. It does better than doing nothing, and than the observer."""

from __future__ import annotations

import pytest

from homeostat.lab.bench.mix_cases import DATAFLOW, DOUBLED_LOAD, HOT_KEY, MICROBATCH, draw_case
from homeostat.lab.bench.mix_oracle import observer, oracle, unhealthy_s
from homeostat.sim.simulation import build_engine

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("engine", [DATAFLOW, MICROBATCH])
def test_the_oracle_mends_what_would_stay_broken(engine: str) -> None:
    case = draw_case(engine, (HOT_KEY, DOUBLED_LOAD), 1)
    untouched = build_engine(case.scenario)
    untouched.wait(case.scenario.duration_s)
    assert unhealthy_s(case, untouched.truth) > 1000.0
    best = oracle(case)
    assert best.unhealthy_s < 120.0
    assert 1 <= best.actions <= 2
    assert observer(case).unhealthy_s >= best.unhealthy_s
