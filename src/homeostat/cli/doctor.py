"""`homeostat doctor`: does this machine have what Homeostat needs, and what can be done for an application here?"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from homeostat._version import __version__
from homeostat.cli.log import store_path
from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, print_json, print_table
from homeostat.cli.status import HOME, STARTED, application_directory, print_capabilities
from homeostat.core.errors import ConfigError

NEEDED = ("numpy", "pydantic", "rich", "typer")
FOR_SPARK = ("pyspark", "pyarrow", "pandas", "httpx", "psutil")
OPTIONAL = {"matplotlib": "for pictures: pip install 'homeostat[plot]'"}
OLDEST_PYTHON = (3, 11)
TOO_NEW_PANDAS = 3
SECOND_ADDRESS = "127.0.0.2"
INSTALL_SPARK = "pip install 'homeostat[spark]'"
CLUSTER_MANAGERS = {"standalone": "verified", "YARN": "not verified", "Kubernetes": "not verified"}


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
    directory: Annotated[
        Path | None,
        typer.Option("--directory", metavar="DIR|APP", help="Of `homeostat run`: tell what can be done there."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Check Python, Java, the libraries, the terminal and the log's place; exit code 3 if something is missing."""
    checks = list(run_checks(store_path(store)))
    capabilities = _capabilities(directory)
    if json:
        print_json(
            {
                "checks": [check._asdict() for check in checks],
                "capabilities": capabilities,
                "cluster_managers": CLUSTER_MANAGERS,
            }
        )
    else:
        rows = [(check.name, "ok" if check.ok else "MISSING", check.found, check.fix) for check in checks]
        styles = ["" if check.ok else "red" for check in checks]
        print_table(("check", "state", "found", "to do"), rows, styles=styles)
        if capabilities:
            print()
            print_capabilities(capabilities)
        told = "; ".join(f"{name}: {state}" for name, state in CLUSTER_MANAGERS.items())
        print(f"\ncluster managers: {told}")
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
    for name in FOR_SPARK:
        yield _spark_library(name)
    yield _java()
    yield _addresses()
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


def _spark_library(name: str) -> Check:
    found = _version(name)
    if not found:
        return Check(name, False, "not installed", INSTALL_SPARK)
    too_new = name == "pandas" and int(found.partition(".")[0]) >= TOO_NEW_PANDAS
    return Check(
        name, not too_new, found, f"Spark needs pandas before {TOO_NEW_PANDAS}: {INSTALL_SPARK}" if too_new else ""
    )


def _java() -> Check:
    from homeostat.spark.cluster.java import find_java

    try:
        java = find_java()
    except ConfigError as error:
        return Check("java", False, error.what, error.fix)
    return Check("java", True, f"{java.version} in {java.home}")


def _addresses() -> Check:
    """The embedded cluster gives each worker an address of its own."""
    name = "loopback"
    try:
        with socket.create_server((SECOND_ADDRESS, 0)):
            return Check(name, True, f"{SECOND_ADDRESS} can be used")
    except OSError as error:
        fix = "name a cluster with --master, or add the address to the loopback device"
        return Check(name, False, f"{SECOND_ADDRESS}: {error.strerror}", fix)


def _capabilities(directory: Path | None) -> list[dict[str, Any]]:
    """What the application in that directory found out when it started; without one, the last that was started."""
    if directory is None and not any(HOME.glob(f"*/{STARTED}")):
        return []
    from homeostat.runtime.launch import CAPABILITIES, read_json

    place = application_directory(directory)
    found = read_json(place / CAPABILITIES)
    if found is None and directory is not None:
        raise ConfigError("nothing was started here", where=str(place), fix="start it with `homeostat run APP.PY`")
    return list(found or [])


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
