"""Finds the application and the log that a command is about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.output import say
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.store.address import LogAddress

DEFAULT_STORE = Path("homeostat.sqlite")
CONFIG_FILE = Path("homeostat.toml")
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="LOG", envvar="HOMEOSTAT_STORE", help="SQLite file or postgresql:// address of the log."
    ),
]


def application_directory(name: Path | None) -> Path:
    """The directory of a named application, or of the one that was started last.

    A name is a directory, the name of an application below `.homeostat`, or its file. Applications of the working
    directory come first, then those that run anywhere else on this machine.
    """
    from homeostat.log_views.overview import HOW_TO_START
    from homeostat.runtime.announcement import HOME, directories_here, read_announcement

    if name is not None:
        below = HOME / (name.stem if name.suffix == ".py" else name.name)
        return below if read_announcement(name) is None and read_announcement(below) is not None else name
    here = directories_here()
    if here:
        return here[-1]
    elsewhere = _only_one_elsewhere("--directory")
    if elsewhere is None:
        raise ConfigError("no application was started in this directory", where=str(HOME), fix=HOW_TO_START)
    return elsewhere


def configured_store(name: str | None) -> LogAddress:
    """The log named by --store or HOMEOSTAT_STORE, else by homeostat.toml, else homeostat.sqlite."""
    from homeostat.store.address import log_address

    if name is not None:
        return log_address(name)
    if not CONFIG_FILE.exists():
        return DEFAULT_STORE
    from homeostat import settings_file

    return settings_file.load().store


def store_path(name: str | None) -> LogAddress:
    """The configured log. If there is none here, the log of an application that a manager watches."""
    from homeostat.store.address import is_missing

    path = configured_store(name)
    if name is not None or CONFIG_FILE.exists() or not is_missing(path):
        return path
    from homeostat.runtime.announcement import directories_here, log_of, read_announcement

    here = directories_here()
    directory = here[-1] if here else _only_one_elsewhere("--store")
    announcement = read_announcement(directory) if directory is not None else None
    return log_of(announcement) if announcement is not None and "store" in announcement else path


def require_log(log: LogAddress, fix: str = "name a log with --store or HOMEOSTAT_STORE") -> LogAddress:
    from homeostat.store.address import is_missing

    if is_missing(log):
        raise ConfigError("no log found", where=str(log), fix=fix)
    return log


def _only_one_elsewhere(option: str) -> Path | None:
    from homeostat.runtime.announcement import directories_elsewhere, read_announcement

    directories = directories_elsewhere()
    if len(directories) > 1:
        places = [
            str((read_announcement(directory) or {}).get("store", directory)) if option == "--store" else str(directory)
            for directory in directories
        ]
        raise ConfigError(
            "several applications are running on this machine", where=option, fix=f"choose one: {', '.join(places)}"
        )
    if not directories:
        return None
    say(f"homeostat: no application was started here; showing the one in {directories[0]}")
    return directories[0]
