"""`homeostat bench preempt`: acting on a forecast, on measurements, and with knowledge of the future."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homeostat.cli.bench_keep import KeepOption, deliver
from homeostat.cli.figures import format_figure
from homeostat.cli.output import JsonFlag, print_table, say


def preempt(
    trace: Annotated[
        list[Path] | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="CSV file with a recorded load, in addition to the synthetic one. Repeatable.",
        ),
    ] = None,
    days: Annotated[int, typer.Option("--days", min=1, help="Days to simulate. Earlier days serve as history.")] = 1,
    seed: Annotated[int, typer.Option("--seed", help="First seed of the noise and of the unpredictable spikes.")] = 1,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of seeds.")] = 3,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Compare acting on a forecast with reactive policies and an oracle: time behind, and cost."""
    from homeostat.lab.bench import preempt as bench
    from homeostat.recorded_data import load_file

    loads, numbers = [load_file.read(path) for path in trace or ()], range(seed, seed + seeds)
    cases = [bench.synthetic_case(days, number, spikes) for spikes in bench.SPIKES for number in numbers]
    cases += [bench.from_trace(load, days, number) for load in loads for number in numbers]
    result = bench.measure(cases, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    columns = ("load", "policy", "seconds behind", "executor hours", "actions", "ahead of a rise")
    rows = [
        (
            Path(name).name,
            policy,
            f"{run['violation_s']:.0f}",
            f"{run['executor_hours']:.1f}",
            f"{run['actions']:g}",
            f"{run['ahead']:g}",
        )
        for name, case in result["cases"].items()
        for policy, run in case["policies"].items()
    ]
    print_table(columns, rows, right=columns[2:])
    for name, case in result["cases"].items():
        share, cost = format_figure(case["violations_over_reactive"]), format_figure(case["cost_over_reactive"])
        more = case["more_violation_s"]
        print(
            f"{Path(name).name}: with the forecast {share} × the seconds behind and {cost} × the cost of reacting; "
            f"{more['median']:+.0f} s a run ({more['low']:+.0f} to {more['high']:+.0f}); "
            + ("accepted" if case["accepted"] else "not accepted")
        )
