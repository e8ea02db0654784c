"""`homeostat bench models`: predictions of configurations that were not used for fitting, and measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from homeostat.cli.bench_keep import KeepOption, deliver
from homeostat.cli.output import JsonFlag, print_table, say
from homeostat.core.errors import ConfigError


def models(
    side: Annotated[
        str, typer.Option("--side", metavar="SIDE", help="Where to measure: simulator, spark or all.")
    ] = "all",
    scale: Annotated[
        float, typer.Option("--scale", min=0.1, max=10, help="Factor for the length of all runs on Spark.")
    ] = 1.0,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Predict the performance of configurations that were not used for fitting, and compare with measurements."""
    from homeostat.lab.bench import models as bench

    if side not in (*bench.SIDES, "all"):
        raise ConfigError(f"unknown side {side!r}", where="--side", fix=f"use one of {', '.join(bench.SIDES)}, all")
    result = bench.measure(sides=bench.SIDES if side == "all" else (side,), scale=scale, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    for name in bench.SIDES:
        if name in result:
            _print_predictions(name, result[name])


def _print_predictions(side: str, measured: Mapping[str, Any]) -> None:
    columns = ("configuration", "batch s", "predicted", "p10 to p90", "error", "covered")
    rows = [
        (
            line["configuration"],
            f"{line['batch_s']['p50']:.2f}",
            f"{line['predicted_s']['p50']:.2f}",
            f"{line['predicted_s']['p10']:.2f} to {line['predicted_s']['p90']:.2f}",
            f"{line['batch_error']:.0%}",
            f"{line['coverage']:.0%}",
        )
        for line in measured["configurations"]
    ]
    print_table(columns, rows, right=columns[1:])
    labels = {
        "median_batch_error": "median error of the batch duration",
        "median_ratio_error": "the same, relative to the fitted one",
        "median_throughput_error": "median error of the throughput",
        "median_saturation_error": "median error of the largest rate",
        "coverage": "batches between predicted p10 and p90",
    }
    for key, label in labels.items():
        if measured.get(key) is not None:
            print(f"{label:<40}{measured[key]:.1%} ({side})")
    for line in measured.get("saturation", ()):
        print(f"{line['setup']}: processes {line['taken_per_s']:,.0f}/s, predicted {line['predicted_per_s']:,.0f}/s")
    for line in measured.get("catch_up", ()):
        print(f"{line['setup']}: caught up in {line['caught_up_s']:.0f} s, predicted {line['predicted_s']:.0f} s")
    if "latency" in measured:
        _print_latency(measured["latency"])
    missed = [name.replace("_", " ") for name, holds in measured["holds"].items() if not holds]
    print(f"{side}: " + (f"not accepted because of {', '.join(missed)}" if missed else "accepted"))


def _print_latency(measured: Mapping[str, Any]) -> None:
    low, high = measured["load_per_s"]
    print(
        f"from {low:,.0f} to {high:,.0f} rows/s and back, objective: p95 latency of at most "
        f"{measured['objective_p95_s']:g} s:"
    )
    print(f"  regulated  {measured['p95_s']:.1f} s with {measured['executors']:.1f} executors on average")
    for name, static in measured["static"].items():
        print(f"  {name}  {static['p95_s']:.1f} s" + ("" if static["holds"] else ", misses the objective"))
