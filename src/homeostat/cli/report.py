"""`homeostat report`: a report of one run as a single HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.find_application import store_path
from homeostat.cli.log import RunOption, StoreOption, open_log, run_name
from homeostat.cli.output import JsonFlag, print_json, say
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.store.protocol import Store


def report(
    store: StoreOption = None,
    run: RunOption = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="HTML file to write.")] = Path("report.html"),
    json: JsonFlag = False,
) -> None:
    """Write an HTML report of a run: charts, decisions, cost, and whether it met its objective.

    The report is a single file and needs no network.
    """
    path = store_path(store)
    with open_log(path) as log:
        name = run_name(log, run, path)
        write(log, name, out)
    if json:
        print_json({"run": name, "file": str(out), "bytes": out.stat().st_size})
    else:
        say(f"Report of {name}: {out}")


def write(store: Store, run: str, out: Path) -> None:
    try:
        from homeostat.web.report import report as render
    except ImportError as error:
        raise ConfigError(
            f"{error.name} is not installed", where="report", fix="pip install 'homeostat[serve]'"
        ) from error
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(render(store, run))
    except OSError as error:
        raise ConfigError(f"cannot write the report: {error.strerror}", where=str(out)) from error
