"""`homeostat bench catchup`: how soon a backlog is gone, how well that is predicted, and whether batches keep to their
budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from homeostat.cli.bench_keep import KeepOption, deliver
from homeostat.cli.figures import format_figure, share
from homeostat.cli.output import JsonFlag, print_table, say


def catchup(
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of outages, each with its own seed.")] = 20,
    first_seed: Annotated[int, typer.Option("--first-seed", min=0, help="First seed.")] = 1000,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Work off the backlog of an outage, and compare with the best fixed configuration, the prediction and a PID."""
    from homeostat.lab.bench import catch_up as bench

    result = bench.measure(seeds=seeds, first_seed=first_seed, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    _print(result)


def _print(result: Mapping[str, Any]) -> None:
    figures = {
        "time with the planner's choice ÷ with the best fixed configuration": "over_best",
        "error of the predicted time of arrival": "arrival_error",
        "error of the first prediction": "first_arrival_error",
    }
    rows = [
        (label, *(format_figure(result[key][name]) for name in ("median", "least", "most")), str(result[key]["count"]))
        for label, key in figures.items()
    ]
    print_table(("figure", "median", "least", "most", "values"), rows, right=("median", "least", "most", "values"))
    print(f"caught up within the objective: {share(result['within_objective'])}")
    rules = [
        (
            rule,
            case,
            share(measured["in_budget"]),
            share(measured["late"]),
            format_figure(measured["over_budget"]["most"]),
        )
        for rule, by_case in result["admission"].items()
        for case, measured in by_case.items()
    ]
    columns = ("rule", "while catching up", "within 10 % of the budget", "longer", "longest ÷ budget")
    print_table(columns, rules, right=columns[2:])
