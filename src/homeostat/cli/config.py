"""`homeostat config`: is the configuration right, and where does each value come from?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from homeostat.cli.output import JsonFlag, print_json, print_table

app = typer.Typer(name="config", help="Check and show the configuration.", no_args_is_help=True)


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file.")],
    json: JsonFlag = False,
) -> None:
    """Check a configuration file; exit code 2 with the line and the reason if something is wrong."""
    from homeostat import config

    config.check(file)
    if json:
        print_json({"file": str(file), "ok": True})
    else:
        print(f"{file}: ok")


@app.command("show")
def show(
    config_file: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Values of this file over the defaults.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Show every setting with its value and where that comes from."""
    from homeostat import config

    settings = config.show(config_file, os.environ, {})
    if json:
        print_json([{"key": key, "value": value, "origin": origin} for key, value, origin in settings])
    else:
        print_table(("setting", "value", "from"), [(key, _written(value), origin) for key, value, origin in settings])


def _written(value: object) -> str:
    """As in the file; what is not set has no value there."""
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else str(value)
