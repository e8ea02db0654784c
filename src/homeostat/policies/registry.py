"""Policies by name: the default ones, those of the paper, rules of other systems, and your own by dotted path."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from homeostat.core.errors import ConfigError
from homeostat.core.policy_definition import Policy
from homeostat.policies import defaults, dotted_paths, paper
from homeostat.policies.peers import PEER_SETTINGS, PEERS
from homeostat.settings import Settings, read
from homeostat.strict.toml_reading import nearest

DEFAULT = "provisioning"

_OURS: dict[str, tuple[Callable[[Settings], Policy], str]] = {
    "provisioning": (defaults.provisioning, "dynamic resource provisioning: no pressure, nothing idle (the default)"),
    "provisioning.paper": (
        lambda settings: paper.provisioning_paper(paper_settings(settings)),
        "the same as in the Dhalion paper: one stage at a time, fixed thresholds, a blacklist",
    ),
    "throughput": (
        defaults.throughput,
        "throughput SLO: sizes sources and stages for it, alerts if it cannot be met",
    ),
    "throughput.paper": (
        lambda settings: paper.throughput_paper(paper_settings(settings)),
        "the same as in the Dhalion paper: sources first, then the stages under pressure",
    ),
    "latency": (defaults.latency, "latency or lag SLO: the model plans trigger, row limit, partitions and executors"),
    "alert": (lambda settings: paper.alert(paper_settings(settings)), "sends alerts and never acts"),
}

_PEERS = {
    "heron": "re-implementation of Heron's shipped scale-up: summed and clamped back-pressure",
    "ds2": "re-implementation of DS2 (OSDI'18): true rates, all operators at once",
    "conttune": "re-implementation of ContTune (VLDB'23): doubles under back-pressure, then a Gaussian process shrinks",
    "demeter": "re-implementation of Demeter (2024): the cheapest size for the forecast load",
    "flink": "re-implementation of the Flink autoscaler's formula: target utilisation, catch-up, delayed scale-down",
    "hpa": "re-implementation of the HPA/KEDA ratio: metric over target, tolerance, stabilisation window",
    "spark-dynamic-allocation": "re-implementation of Spark's dynamic allocation: pending and running tasks",
    "dstream": "re-implementation of the DStream ratio rule: processing time over batch interval",
    "static": "no regulation: sized once for the peak load",
}


def names() -> tuple[str, ...]:
    return (*_OURS, *_PEERS)


def peer_names() -> tuple[str, ...]:
    return tuple(_PEERS)


def describe(name: str) -> str:
    return _OURS[name][1] if name in _OURS else _PEERS[name]


def build(
    name: str,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    scenario_peak_per_s: float | None = None,
    peer_settings: Mapping[str, Any] | None = None,
) -> Policy:
    """Return the policy with these settings.

    `scenario_peak_per_s` is the load that `static` is sized for. `peer_settings` are those of a rule of another system.
    """
    parsed_settings = read(settings or {})
    if name in _OURS:
        policy = _OURS[name][0](parsed_settings)
    elif name == "static":
        policy = PEERS[name](peak_per_s=scenario_peak_per_s)
    elif name in _PEERS:
        policy = PEERS[name](PEER_SETTINGS[name](**(peer_settings or {})))
    elif ":" in name:
        return dotted_paths.extend(dotted_paths.policy(name), parsed_settings.plugins)
    else:
        raise ConfigError(f"unknown policy {name!r}", fix=nearest(name, names()))
    return dotted_paths.extend(replace(policy, name=name), parsed_settings.plugins)


def paper_settings(settings: Settings) -> paper.PaperSettings:
    values = settings.paper
    return paper.PaperSettings(
        cadence_s=values.cadence,
        settle_s=values.settle,
        window_s=values.window,
        fence=paper.FENCE if values.fence else math.inf,
        noise_filter=values.noise_filter,
        rate_skew=values.rate_skew,
        queue_skew=values.queue_skew,
        shrink_factor=values.shrink_factor,
        idle_pending_s=values.idle_pending,
        blacklist_ratio=values.blacklist_ratio,
    )
