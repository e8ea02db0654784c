"""`homeostat audit`: who did what."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from homeostat.cli.find_application import store_path
from homeostat.cli.log import StoreOption, open_log, run_name
from homeostat.cli.output import JsonFlag, clock, print_json, print_table


def audit(
    store: StoreOption = None,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="Print only the commands given to this run. Default: all entries."),
    ] = None,
    last: Annotated[int, typer.Option("--last", metavar="N", min=1, max=5_000, help="Print the newest N lines.")] = 50,
    json: JsonFlag = False,
) -> None:
    """Show who did what: commands with their answers, sign-ins, refused requests, and changes to tokens."""
    from homeostat.log_views.audit import audit_trail

    path = store_path(store)
    with open_log(path) as opened:
        name = run_name(opened, run, path) if run is not None else ""
        lines = audit_trail(opened, path, last, name)[::-1]
    if json:
        print_json([asdict(line) for line in lines])
        return
    rows = [
        (clock(e.at_s), e.who or "-", e.role or "-", e.origin or "-", e.run or "-", e.what, e.answer) for e in lines
    ]
    print_table(("time", "who", "role", "from", "run", "what", "answer"), rows)
