"""`homeostat log prune` and `homeostat log compact`: make a log smaller by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.find_application import StoreOption, require_log, store_path
from homeostat.cli.output import JsonFlag, print_json

if TYPE_CHECKING:
    from homeostat.store.sql_store import SqlStore

SettingsOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings file. Default: homeostat.toml in the working directory."),
]
AgeOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="log.KEY=VALUE", help="Setting of the log, such as 'log.detail=1 d'. Repeatable."),
]


def prune(
    store: StoreOption = None, config: SettingsOption = None, settings: AgeOption = None, json: JsonFlag = False
) -> None:
    """Summarise old batches and delete old records now, according to the settings of the log.

    A running manager does this continuously, in small steps.
    """
    from homeostat import settings_file
    from homeostat.cli.scenario_arguments import parse_settings
    from homeostat.store.retention import Retention

    ages = settings_file.load(config, flags=parse_settings(settings or [])).log
    with _writable(store) as opened:
        before = opened.usage()
        done = Retention(opened, ages).finish()
        after = opened.usage()
    _tell(json, store, {"summaries": done.summaries, "deleted": done.deleted}, before.file_bytes, after.file_bytes)


def compact(store: StoreOption = None, json: JsonFlag = False) -> None:
    """Rewrite the log to give unused space back to the disk. No record is deleted.

    A log from an earlier version shrinks automatically only after you have run this once. The command needs as much
    free space on the disk as the log takes.
    """

    with _writable(store) as opened:
        before = opened.usage()
        opened.compact()
        after = opened.usage()
    _tell(json, store, {}, before.file_bytes, after.file_bytes)


@contextmanager
def _writable(store: str | None) -> Iterator[SqlStore]:
    from homeostat.store.opening import open_store

    path = require_log(store_path(store))
    open_store(path, read_only=True).close()  # do not turn an empty file into a log
    opened = open_store(path)
    try:
        yield opened
    finally:
        opened.close()


def _tell(json: bool, store: str | None, figures: dict[str, int], before_bytes: int, after_bytes: int) -> None:
    from homeostat.strict.units import format_size

    path = store_path(store)
    if json:
        print_json({"store": str(path), **figures, "bytes_before": before_bytes, "bytes": after_bytes})
        return
    for name, number in figures.items():
        print(f"{name:<12}{number:,}")
    print(f"{'size':<12}{format_size(before_bytes)} before, {format_size(after_bytes)} now ({path})")
