"""`homeostat bench endurance`: one manager over many simulated days."""

from __future__ import annotations

from typing import Annotated

import typer

from homeostat.cli.bench_keep import KeepOption, deliver
from homeostat.cli.output import JsonFlag, print_table, say


def endurance(
    days: Annotated[float, typer.Option("--days", min=0.25, help="Simulated days.")] = 30.0,
    queries: Annotated[
        int, typer.Option("--queries", min=1, help="Number of queries that the manager regulates.")
    ] = 20,
    batch: Annotated[float, typer.Option("--batch", min=1.0, help="Simulated seconds between two batches.")] = 120.0,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Run one manager for many simulated days, and measure whether its memory or its log grows."""
    from homeostat.lab.bench import endurance as bench

    say(
        f"simulating {days:g} days of {queries} queries with a batch every {batch:g} s; 30 days take about half an hour"
    )
    result = bench.measure(days=days, queries=queries, batch_s=batch, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    columns = ("what", "after a day", "at the end", "growth per day", "interval", "within noise")
    names = {
        "resident_mb": "memory of the manager, MB",
        "server_mb": "memory of the dashboard, MB",
        "store_mb": "log, MB",
        "blocks": "blocks of memory in the manager",
    }
    rows = []
    for key, name in names.items():
        figures = result[key]
        low, high = figures["interval"]
        rows.append(
            (
                name,
                f"{figures['first']}",
                f"{figures['last']}",
                f"{figures['growth_a_day']:+.3f}",
                f"{low:+.3f} to {high:+.3f}",
                "yes" if figures["within_noise"] else "no",
            )
        )
    print_table(columns, rows, right=columns[1:])
    print(f"worst cycle     {result['worst_cycle_s']:.2f} s, for all queries together")
    print(f"threads         {result['threads'][0]} to {result['threads'][1]}")
    print(f"open files      {result['files'][0]} to {result['files'][1]}")
