"""A user's own parts, found by dotted path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from homeostat.core.errors import ConfigError
from homeostat.core.policy import Policy
from homeostat.models.forecast import statsforecast_candidates
from homeostat.settings import STATSFORECAST, PluginSettings

_VERBS = {
    "detectors": "detect",
    "diagnosers": "diagnose",
    "resolvers": "resolve",
    "forecasters": "ahead",
    "proposers": "propose",
}


def load(path: str) -> Any:
    """The object at `package.module:name`; modules beside the working directory are found too."""
    module_name, _, name = path.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"cannot import {module_name!r}: {error}", where=path) from None
    except Exception as error:
        raise ConfigError(f"importing it raised {_told(error)}", where=path) from None
    if not hasattr(module, name):
        raise ConfigError(f"module {module_name!r} has no {name!r}", where=path)
    return getattr(module, name)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def part(path: str, kind: str) -> Any:
    """A plug-in of the given kind; a class is made into an object."""
    found = load(path)
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:
            raise ConfigError(f"making it raised {_told(error)}", where=path) from None
    verb = _VERBS[kind]
    if not callable(getattr(found, verb, None)):
        raise ConfigError(f"has no method {verb!r}, so it is none of the {kind}", where=path)
    if not getattr(found, "name", ""):
        raise ConfigError("has no name", where=path, fix="give it an attribute 'name'")
    return found


def parts(paths: Iterable[str], kind: str) -> tuple[Any, ...]:
    """The plug-ins of a kind, each once; statsforecast's models are forecasters, too."""
    found: list[Any] = []
    for path in dict.fromkeys(paths):
        found += (
            statsforecast_candidates.candidates()
            if (kind, path) == ("forecasters", STATSFORECAST)
            else [part(path, kind)]
        )
    return tuple(found)


def extended(policy: Policy, plugins: PluginSettings) -> Policy:
    """The policy with the user's parts added to its own."""
    return replace(
        policy,
        detectors=(*policy.detectors, *parts(plugins.detectors, "detectors")),
        diagnosers=(*policy.diagnosers, *parts(plugins.diagnosers, "diagnosers")),
        resolvers=(*policy.resolvers, *parts(plugins.resolvers, "resolvers")),
    )


def policy(path: str) -> Policy:
    """A policy of the user's own: an object with a policy's attributes, or a function that makes one."""
    found = load(path)
    try:
        made = found() if callable(found) else found
    except Exception as error:
        raise ConfigError(f"making it raised {_told(error)}", where=path) from None
    missing = [
        name
        for name in ("name", "detectors", "diagnosers", "resolvers", "guards", "memory", "judge", "arbiter")
        if not hasattr(made, name)
    ]
    if missing:
        raise ConfigError(f"is no policy: it has no {missing[0]!r}", where=path, fix="see docs/reference/plugins.md")
    return made  # type: ignore[no-any-return]
