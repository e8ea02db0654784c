"""From command-line arguments to scenarios, policies and runs."""

from __future__ import annotations

import doctest

import pytest

from homeostat.cli import scenario_arguments
from homeostat.cli.scenario_arguments import acting_policies, load_scenario, merge_settings, new_run_name, parse_mode
from homeostat.core.errors import ConfigError
from homeostat.core.records import Record
from homeostat.store.in_memory import MemoryStore


def test_the_examples_in_the_docstrings_hold() -> None:
    results = doctest.testmod(scenario_arguments)
    assert (results.attempted > 0, results.failed) == (True, 0)


def test_settings_on_the_command_line_override_those_of_the_scenario() -> None:
    below = {"loop": {"settle": "1 min", "window": "5 min"}}
    assert merge_settings(below, {"loop": {"settle": "2 min"}}) == {"loop": {"settle": "2 min", "window": "5 min"}}


def test_a_repeated_simulation_gets_a_name_of_its_own() -> None:
    store = MemoryStore()
    for expected in ("E1/ds2/1", "E1/ds2/1#2", "E1/ds2/1#3"):
        name = new_run_name(store, "E1/ds2/1")
        assert name == expected
        store.append(name, [Record("g-1", "engine", 0.0, "")])


def test_only_policies_that_act_and_fit_are_compared() -> None:
    policies = acting_policies(load_scenario("E1"))
    assert "provisioning" in policies
    assert not {"alert", "throughput"} & set(policies)


def test_an_unknown_mode_is_an_error_with_the_nearest() -> None:
    assert parse_mode("regulate") == "regulate"
    with pytest.raises(ConfigError, match="--mode: unknown mode 'regular'"):
        parse_mode("regular")
