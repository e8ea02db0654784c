"""Policies by name."""

from __future__ import annotations

import math

import pytest

from homeostat.core.errors import ConfigError
from homeostat.core.policy_definition import Policy
from homeostat.policies import registry
from homeostat.policies.peers import (
    PEER_SETTINGS,
    PEERS,
)
from homeostat.settings import read


def build(name: str) -> Policy:
    return PEERS[name](peak_per_s=100.0) if name == "static" else PEERS[name]()


def test_the_registry_names_each_peer_with_its_settings() -> None:
    assert list(PEERS) == [
        "heron",
        "ds2",
        "conttune",
        "demeter",
        "flink",
        "hpa",
        "spark-dynamic-allocation",
        "dstream",
        "static",
    ]
    assert list(PEER_SETTINGS) == list(PEERS)
    assert [build(name).name for name in PEERS] == list(PEERS)


@pytest.mark.parametrize("name", registry.names())
def test_every_name_builds_a_policy_of_that_name_and_has_a_description(name: str) -> None:
    assert registry.build(name, scenario_peak_per_s=100.0).name == name
    assert registry.describe(name)


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="ds3") as refused:
        registry.build("ds3")
    assert "ds2" in refused.value.line


def test_settings_reach_the_policy() -> None:
    policy = registry.build("provisioning.paper", {"paper": {"settle": "3 min", "fence": False}})
    assert policy.settle_s == 180.0
    assert registry.paper_settings(read({"paper": {"fence": False}})).fence == math.inf
