"""Forecasters and proposers of one's own that a command is given, beside those of the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

WithOption = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="NAME", help="A further candidate: statsforecast, or package.module:name."),
]


def plugged(kind: str, named: Sequence[str] | None) -> tuple[Any, ...]:
    """Those that the configuration names, and those that an option does."""
    from homeostat import config
    from homeostat.policies import dotted_paths

    return dotted_paths.parts([*getattr(config.load().settings.plugins, kind), *(named or ())], kind)
