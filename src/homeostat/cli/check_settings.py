"""`homeostat config`: check a settings file, and show where each value comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from homeostat.cli.output import JsonFlag, print_json, print_table

app = typer.Typer(name="config", help="Check and show settings.", no_args_is_help=True)


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Settings file to check.")],
    json: JsonFlag = False,
) -> None:
    """Check a settings file. On a mistake, print its line and the fix, and exit with code 2."""
    from homeostat import settings_file

    settings_file.check(file)
    if json:
        print_json({"file": str(file), "ok": True})
    else:
        print(f"{file}: ok")


@app.command("show")
def show(
    config_file: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Settings file. Default: homeostat.toml in the working directory."
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """List every setting with its value and where the value comes from."""
    from homeostat import settings_file

    settings = settings_file.show(config_file, os.environ, {})
    if json:
        print_json([{"key": key, "value": value, "origin": origin} for key, value, origin in settings])
    else:
        print_table(("setting", "value", "from"), [(key, _toml_text(value), origin) for key, value, origin in settings])


def _toml_text(value: object) -> str:
    """The value as you would write it in the file, or "-" if it is not set."""
    if isinstance(value, bool):
        return str(value).lower()
    return "-" if value is None else str(value)
