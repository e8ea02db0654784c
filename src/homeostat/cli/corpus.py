"""`homeostat corpus`: record labelled event logs of real streaming queries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, print_json, print_table, say

if TYPE_CHECKING:
    from homeostat.lab.corpus.labels import Label

app = typer.Typer(
    name="corpus", help="Record event logs of real streaming queries with known faults.", no_args_is_help=True
)
_COLUMNS = ("run", "job", "batches", "fault", "component", "strength", "batch s before", "during", "effect")


@app.command("record")
def record(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Directory to write the event logs and their labels to.")
    ],
    only: Annotated[
        str,
        typer.Option("--only", metavar="NAME,NAME,…", help="Jobs, faults or cases to record. Default: all."),
    ] = "",
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of each case.")] = 2,
    seconds: Annotated[
        float, typer.Option("--seconds", min=5.0, help="Length of a run, counted after its first batches.")
    ] = 32.0,
    seed: Annotated[
        int, typer.Option("--seed", help="Random seed that sets the strength and the time of each fault.")
    ] = 1,
    json: JsonFlag = False,
) -> None:
    """Run streaming queries on Spark with injected faults, and write their event logs with labels."""
    from homeostat.lab.corpus.plan import planned_runs
    from homeostat.lab.corpus.record_runs import record as take

    names = [name.strip() for name in only.split(",") if name.strip()]
    planned = planned_runs(names, runs, seed)
    say(f"recording {len(planned)} runs, about a minute each")
    labels = take(out, planned, say, seconds)
    if json:
        print_json([label.as_json() for label in labels])
    else:
        print_table(_COLUMNS, [row for label in labels for row in _rows(label)], right=_COLUMNS[5:])
    if len(labels) < len(planned):
        say(f"{len(planned) - len(labels)} runs failed and were not recorded")
        raise typer.Exit(EXIT_UNHEALTHY)


def _rows(label: Label) -> list[tuple[str, ...]]:
    start = (label.run, label.job, str(label.batches))
    if label.clean:
        return [(*start, "none", "", "", "", "", "")]
    return [
        (
            *start,
            fault.cause,
            fault.component,
            f"{fault.strength:g}",
            f"{fault.before_s:.2f}",
            f"{fault.during_s:.2f}",
            f"{fault.effect:.0%} of {fault.measure}" if fault.is_case else f"{fault.effect:.0%}, no case",
        )
        for fault in label.faults
    ]
