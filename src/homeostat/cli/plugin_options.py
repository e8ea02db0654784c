"""The --with and --proposer options: plug-ins for one command, in addition to the configured ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

WithOption = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="NAME",
        help="Add a forecaster: statsforecast, or your own as package.module:name. Repeatable.",
    ),
]


def load_plugins(kind: str, paths: Sequence[str] | None) -> tuple[Any, ...]:
    """The plug-ins of this kind from the configuration, then those from the command line."""
    from homeostat import settings_file
    from homeostat.policies import dotted_paths

    return dotted_paths.parts([*getattr(settings_file.load().settings.plugins, kind), *(paths or ())], kind)
