"""A scenario written as TOML reads back as itself; other kinds are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.errors import ConfigError
from homeostat.sim.scenario import catalogue
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.sim.scenario.toml_text import to_toml
from support.models import scenario


def test_a_scenario_in_steps_reads_back_as_itself() -> None:
    steps = replace(scenario(), workload=WorkloadSpec("steps", steps=((0.0, 10.0), (60.0, 20.5))))
    assert catalogue.loads(to_toml(steps)) == steps


def test_a_load_of_another_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="only micro-batch scenarios with a load in steps"):
        to_toml(scenario())
