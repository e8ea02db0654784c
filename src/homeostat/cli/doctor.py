"""`homeostat doctor`: does this machine have what Homeostat needs?"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from homeostat._version import __version__
from homeostat.cli.log import store_path
from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, print_json, print_table

NEEDED = ("numpy", "pydantic", "rich", "typer")
OPTIONAL = {"matplotlib": "for pictures: pip install 'homeostat[plot]'"}
OLDEST_PYTHON = (3, 11)


class Check(NamedTuple):
    name: str
    ok: bool
    found: str
    fix: str = ""


def doctor(
    store: Annotated[
        Path | None,
        typer.Option("--store", metavar="FILE", envvar="HOMEOSTAT_STORE", help="The log whose place is checked."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Check Python, the libraries, the terminal and the place of the log; exit code 3 if something is missing."""
    checks = list(run_checks(store_path(store)))
    if json:
        print_json([check._asdict() for check in checks])
    else:
        rows = [(check.name, "ok" if check.ok else "MISSING", check.found, check.fix) for check in checks]
        styles = ["" if check.ok else "red" for check in checks]
        print_table(("check", "state", "found", "to do"), rows, styles=styles)
    if not all(check.ok for check in checks):
        raise typer.Exit(EXIT_UNHEALTHY)


def run_checks(store: Path) -> Iterator[Check]:
    yield Check("homeostat", True, __version__)
    version = platform.python_version()
    yield Check(
        "python",
        sys.version_info >= OLDEST_PYTHON,
        version,
        "" if sys.version_info >= OLDEST_PYTHON else "use Python 3.11 or newer",
    )
    for name in NEEDED:
        found = _version(name)
        yield Check(name, bool(found), found or "not installed", "" if found else f"pip install {name}")
    for name, fix in OPTIONAL.items():
        found = _version(name)
        yield Check(name, True, found or "not installed (optional)", "" if found else fix)
    yield _terminal()
    yield _place(store)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _terminal() -> Check:
    if not sys.stdout.isatty():
        return Check("terminal", True, "none: plain output")
    size = os.get_terminal_size()
    colours = "without colours (NO_COLOR)" if os.environ.get("NO_COLOR") else "with colours"
    return Check("terminal", True, f"{size.columns} × {size.lines}, {colours}")


def _place(store: Path) -> Check:
    """A file that may be written, or the nearest directory that exists above one that is not there yet."""
    place = store
    while not place.exists() and place != place.parent:
        place = place.parent
    if store.is_dir():
        return Check("log", False, f"{store} is a directory", "name a file with --store")
    writable = os.access(place, os.W_OK)
    found = f"{store} ({'exists' if store.exists() else 'not there yet'}{'' if writable else ', cannot be written'})"
    return Check("log", writable, found, "" if writable else f"make {place} writable, or name another file")
