"""Turns command-line arguments into scenarios, policies and runs."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from homeostat.cli.output import say
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.core.loop_state import Mode
    from homeostat.core.policy_definition import Policy
    from homeostat.sim.scenario.spec import Scenario
    from homeostat.sim.simulation import RunResult
    from homeostat.store.protocol import Store
    from homeostat.strict.toml_reading import Problem

Settings = Mapping[str, Mapping[str, object]]


def load_scenario(name_or_path: str) -> Scenario:
    """Load a scenario. Repairs to its recorded load are reported on stderr."""
    from homeostat.sim.scenario import catalogue

    scenario = catalogue.load(name_or_path)
    for note in scenario.notes:
        say(f"note: {note}")
    return scenario


def parse_settings(assignments: Sequence[str]) -> dict[str, dict[str, object]]:
    """Parse `section.key=value`. Values are written as in TOML; text needs no quotes.

    >>> parse_settings(["guards.largest_change=20", "paper.settle=3 min"])
    {'guards': {'largest_change': 20}, 'paper': {'settle': '3 min'}}
    """
    settings: dict[str, dict[str, object]] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        section, dot, key = name.strip().partition(".")
        if not (equals and dot and section and key):
            raise ConfigError(
                f"cannot parse {assignment!r}",
                where="--set",
                fix="write section.key=value, such as guards.largest_change=20",
            )
        settings.setdefault(section, {})[key] = _value(text.strip())
    return settings


def _value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def merge_settings(below: Settings, above: Settings) -> dict[str, dict[str, object]]:
    return {section: {**below.get(section, {}), **above.get(section, {})} for section in [*below, *above]}


def policy_for(
    scenario: Scenario, name: str | None = None, settings: Settings | None = None, source: str = ""
) -> Policy:
    """Build the named policy, or the scenario's own. `settings` override the settings of the scenario.

    With `source`, the file of the scenario, an error names the line that caused it.
    """
    from homeostat.policies import registry

    all_settings = merge_settings(scenario.settings, settings or {})
    for problem in _contradictions(scenario, name or scenario.policy):
        raise ConfigError(problem.what, where=_where(scenario, problem, name, source), fix=problem.fix)
    return registry.build(name or scenario.policy, all_settings, scenario_peak_per_s=peak_per_s(scenario))


def _contradictions(scenario: Scenario, policy: str) -> list[Problem]:
    from homeostat import settings_file

    return list(settings_file.contradictions(policy, scenario.objective))


def _where(scenario: Scenario, problem: Problem, policy: str | None, source: str) -> str:
    from homeostat.sim.scenario import catalogue

    if policy is not None and problem.path == ("policy",):
        return "--policy"
    return catalogue.open_document(source).where(problem.path) if source else scenario.name


def fitting(scenario: Scenario, names: Iterable[str]) -> list[str]:
    """The policies that can pursue the scenario's objective."""
    return [name for name in names if not _contradictions(scenario, name)]


def acting_policies(scenario: Scenario) -> list[str]:
    """All policies that act and can pursue the scenario's objective."""
    from homeostat.policies import registry

    other = "provisioning" if scenario.policy.startswith("throughput") else "throughput"
    acting = [name for name in registry.names() if name != "alert" and not name.startswith(other)]
    return fitting(scenario, acting)


def peak_per_s(scenario: Scenario) -> float:
    """The peak of the load without noise. A static configuration is sized for it."""
    from homeostat.sim.simulation import interval_s
    from homeostat.sim.workload import Workload

    step_s = interval_s(scenario)
    workload = Workload(scenario.workload, scenario.seed, step_s)
    return max(workload.mean_per_s(number * step_s) for number in range(int(scenario.duration_s / step_s) + 1))


def parse_mode(text: str) -> Mode:
    from homeostat.core.loop_state import MODES
    from homeostat.strict.toml_reading import nearest

    for mode in MODES:
        if mode == text:
            return mode
    raise ConfigError(f"unknown mode {text!r}", where="--mode", fix=nearest(text, MODES))


def run_all(
    scenario: Scenario,
    names: Sequence[str],
    seed: int | None = None,
    settings: Settings | None = None,
    source: str = "",
) -> list[RunResult]:
    """Run every policy on the same load and noise. An unknown name is an error before the first run."""
    from homeostat.sim.simulation import simulate

    policies = [policy_for(scenario, name, settings, source) for name in dict.fromkeys(names)]
    results = []
    for number, policy in enumerate(policies, 1):
        _progress(f"{scenario.name}: {policy.name} ({number} of {len(policies)})")
        results.append(simulate(scenario, policy, seed=seed))
    _progress("")
    return results


def new_run_name(store: Store, base: str) -> str:
    """A name that is not in the log yet, so that a repeated simulation does not continue an earlier run."""
    used_names = {info.name for info in store.runs()}
    name, number = base, 1
    while name in used_names:
        number += 1
        name = f"{base}#{number}"
    return name


def _progress(text: str) -> None:
    """A progress line that overwrites itself, only on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
