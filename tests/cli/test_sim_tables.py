"""How simulated runs are printed."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from homeostat.cli import sim_tables
from homeostat.cli.scenario_arguments import load_scenario, policy_for
from homeostat.sim.simulation import simulate


def test_the_examples_in_the_docstrings_hold() -> None:
    results = doctest.testmod(sim_tables)
    assert (results.attempted > 0, results.failed) == (True, 0)


@pytest.mark.slow
def test_repeated_advice_is_printed_once_with_its_count(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load_scenario(str(scenario))
    result = simulate(loaded, policy_for(loaded), mode="advise")
    texts = [record.text for record in result.advice]
    sim_tables.print_run(loaded, result)
    lines = [line for line in capsys.readouterr().out.splitlines() if "  advice: " in line]
    assert len(lines) < len(texts)
    assert " times until " in "".join(lines)
