"""`homeostat doctor`: checks that this machine has what Homeostat needs, and lists the possible actions."""

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
from homeostat.cli.find_application import application_directory, configured_store
from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, print_json, print_table
from homeostat.cli.status import print_capabilities
from homeostat.core.errors import ConfigError, HomeostatError, NoLogError
from homeostat.store.address import LogAddress, PostgresAddress

NEEDED = ("numpy", "pydantic", "rich", "typer")
FOR_SPARK = ("pyspark", "pyarrow", "pandas", "httpx", "psutil")
OPTIONAL = {
    "matplotlib": "for pictures: pip install 'homeostat[plot]'",
    "confluent-kafka": "for the lag of Kafka topics: pip install 'homeostat[kafka]'",
}
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
        str | None,
        typer.Option(
            "--store",
            metavar="LOG",
            envvar="HOMEOSTAT_STORE",
            help="Log to check. It does not have to exist yet.",
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--directory", metavar="DIR|APP", help="Application for which to list the possible actions."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Check that Python, Java, the libraries and the log file are usable.

    The last column says how to fix what is missing. Exit code 3: something is missing.
    """
    checks = list(run_checks(configured_store(store)))
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
        print_table(("check", "state", "found", "fix"), rows, styles=styles)
        if capabilities:
            print()
            print_capabilities(capabilities)
        manager_states = "; ".join(f"{name}: {state}" for name, state in CLUSTER_MANAGERS.items())
        print(f"\ncluster managers: {manager_states}")
    if not all(check.ok for check in checks):
        raise typer.Exit(EXIT_UNHEALTHY)


def run_checks(store: LogAddress) -> Iterator[Check]:
    yield Check("homeostat", True, __version__)
    version = platform.python_version()
    yield Check(
        "python",
        sys.version_info >= OLDEST_PYTHON,
        version,
        "" if sys.version_info >= OLDEST_PYTHON else "use Python 3.11 or newer",
    )
    for name in NEEDED:
        version = _version(name)
        yield Check(name, bool(version), version or "not installed", "" if version else f"pip install {name}")
    for name in FOR_SPARK:
        yield _spark_library(name)
    yield _java()
    yield _addresses()
    yield _kafka()
    for name, fix in OPTIONAL.items():
        version = _version(name)
        yield Check(name, True, version or "not installed (optional)", "" if version else fix)
    yield _terminal()
    yield _place(store)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _spark_library(name: str) -> Check:
    version = _version(name)
    if not version:
        return Check(name, False, "not installed", INSTALL_SPARK)
    too_new = name == "pandas" and int(version.partition(".")[0]) >= TOO_NEW_PANDAS
    fix = f"Spark requires pandas older than {TOO_NEW_PANDAS}: {INSTALL_SPARK}" if too_new else ""
    return Check(name, not too_new, version, fix)


def _java() -> Check:
    from homeostat.spark.cluster.java import find_java

    try:
        java = find_java()
    except ConfigError as error:
        return Check("java", False, error.what, error.fix)
    return Check("java", True, f"{java.version} in {java.home}")


def _addresses() -> Check:
    """The local cluster gives each worker its own loopback address."""
    name = "loopback"
    try:
        with socket.create_server((SECOND_ADDRESS, 0)):
            return Check(name, True, f"{SECOND_ADDRESS} is usable")
    except OSError as error:
        fix = "use another cluster with --master, or add the address to the loopback device"
        return Check(name, False, f"{SECOND_ADDRESS}: {error.strerror}", fix)


def _kafka() -> Check:
    """Optional: most applications read something else."""
    from homeostat.spark.cluster.kafka_connector import connector_jars, why_missing

    name = "kafka connector"
    if not _version("pyspark"):
        return Check(name, True, "not installed (optional)", INSTALL_SPARK)
    what, _, fix = why_missing().partition(": ")
    connector = next((jar for jar in connector_jars() if "sql-kafka" in jar.artifact), None)
    version_text = f"{connector.artifact} {connector.version}" if connector is not None else "in Spark"
    return Check(name, True, "not installed (optional)" if what else version_text, f"for Kafka: {fix}" if what else "")


def _capabilities(directory: Path | None) -> list[dict[str, Any]]:
    """The actions that the named application can take. Without a name: those of the one started last here."""
    from homeostat.log_views.overview import HOW_TO_START
    from homeostat.runtime.announcement import directories_here
    from homeostat.runtime.launch import CAPABILITIES, read_json

    if directory is None and not directories_here():
        return []
    place = application_directory(directory)
    capabilities = read_json(place / CAPABILITIES)
    if capabilities is None and directory is not None:
        raise ConfigError("no application was started in this directory", where=str(place), fix=HOW_TO_START)
    return list(capabilities or [])


def _terminal() -> Check:
    if not sys.stdout.isatty():
        return Check("terminal", True, "not a terminal: plain output")
    size = os.get_terminal_size()
    colours = "without colours (NO_COLOR)" if os.environ.get("NO_COLOR") else "with colours"
    return Check("terminal", True, f"{size.columns} × {size.lines}, {colours}")


def _database(log: PostgresAddress) -> Check:
    """Whether the server answers. Nothing is written to the database."""
    from homeostat.store.opening import open_store

    try:
        open_store(log, read_only=True).close()
    except NoLogError as error:
        return Check("log", True, f"{log} ({error.what})")
    except HomeostatError as error:
        return Check("log", False, error.line.removesuffix(f" ({error.fix})"), error.fix)
    return Check("log", True, f"{log} (exists)")


def _place(store: LogAddress) -> Check:
    """Whether the file can be written; if it does not exist, whether its nearest existing parent can."""
    if not isinstance(store, Path):
        return _database(store)
    place = store
    while not place.exists() and place != place.parent:
        place = place.parent
    if store.is_dir():
        return Check("log", False, f"{store} is a directory", "choose a file with --store")
    writable = os.access(place, os.W_OK)
    state = f"{store} ({'exists' if store.exists() else 'does not exist yet'}{'' if writable else ', not writable'})"
    return Check(
        "log", writable, state, "" if writable else f"make {place} writable, or choose another file with --store"
    )
