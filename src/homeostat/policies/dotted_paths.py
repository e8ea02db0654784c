"""Loads plug-ins by their dotted path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from homeostat.core.errors import ConfigError
from homeostat.core.policy_definition import Policy
from homeostat.diagnosers.strengths import CauseModel
from homeostat.models.forecast import statsforecast_candidates
from homeostat.settings import STATSFORECAST, PluginSettings

_VERBS = {
    "detectors": "detect",
    "diagnosers": "diagnose",
    "resolvers": "resolve",
    "forecasters": "ahead",
    "proposers": "propose",
    "models of causes": "probability",
}


def load(path: str) -> Any:
    """Return the object at `package.module:name`. The working directory is searched too."""
    module_name, _, name = path.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(
            f"cannot import {module_name!r}: {error}", where=path, fix="check the path and install the package"
        ) from None
    except Exception as error:
        raise ConfigError(f"importing {module_name!r} raised {_error_text(error)}", where=path) from None
    if not hasattr(module, name):
        raise ConfigError(f"module {module_name!r} has no {name!r}", where=path, fix="write it as package.module:name")
    return getattr(module, name)


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def part(path: str, kind: str) -> Any:
    """Return the plug-in at a path. A class is instantiated without arguments."""
    plugin = load(path)
    if isinstance(plugin, type):
        try:
            plugin = plugin()
        except Exception as error:
            raise ConfigError(f"creating the plug-in raised {_error_text(error)}", where=path) from None
    verb = _VERBS[kind]
    if not callable(getattr(plugin, verb, None)):
        raise ConfigError(f"the plug-in has no method {verb!r}, which all {kind} need", where=path)
    if not getattr(plugin, "name", ""):
        raise ConfigError("the plug-in has no name", where=path, fix="add an attribute 'name'")
    return plugin


def cause_model(path: str) -> CauseModel:
    """Return the model of causes at a path. A class is instantiated without arguments."""
    return part(path, "models of causes")  # type: ignore[no-any-return]


def parts(paths: Iterable[str], kind: str) -> tuple[Any, ...]:
    """Return the plug-ins of a kind, each once. The models of statsforecast are forecasters too."""
    plugins: list[Any] = []
    for path in dict.fromkeys(paths):
        plugins += (
            statsforecast_candidates.candidates()
            if (kind, path) == ("forecasters", STATSFORECAST)
            else [part(path, kind)]
        )
    return tuple(plugins)


def extend(policy: Policy, plugins: PluginSettings) -> Policy:
    """Return the policy with the plug-ins added to its own parts."""
    return replace(
        policy,
        detectors=(*policy.detectors, *parts(plugins.detectors, "detectors")),
        diagnosers=(*policy.diagnosers, *parts(plugins.diagnosers, "diagnosers")),
        resolvers=(*policy.resolvers, *parts(plugins.resolvers, "resolvers")),
    )


def policy(path: str) -> Policy:
    """Return the policy at a path: an object with the attributes of a policy, or a function that returns one."""
    target = load(path)
    try:
        candidate = target() if callable(target) else target
    except Exception as error:
        raise ConfigError(f"creating the policy raised {_error_text(error)}", where=path) from None
    missing = [
        name
        for name in ("name", "detectors", "diagnosers", "resolvers", "guards", "memory", "judge", "arbiter")
        if not hasattr(candidate, name)
    ]
    if missing:
        raise ConfigError(
            f"this is not a policy: it has no {missing[0]!r}", where=path, fix="see docs/reference/plugins.md"
        )
    return candidate  # type: ignore[no-any-return]
