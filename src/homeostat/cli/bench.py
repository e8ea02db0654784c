"""`homeostat bench`: measure Homeostat itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from homeostat.cli import (
    bench_catchup,
    bench_diagnosis,
    bench_duel,
    bench_endurance,
    bench_forecast,
    bench_mixes,
    bench_report,
    bench_spark,
)
from homeostat.cli.bench_keep import KeepOption, deliver
from homeostat.cli.figures import format_figure, numbers
from homeostat.cli.output import JsonFlag, print_table, say
from homeostat.core.errors import ConfigError

ENGINES = ("dataflow", "microbatch", "all")

app = typer.Typer(name="bench", help="Measure Homeostat itself.", no_args_is_help=True)


@app.command("control")
def control(
    steps: Annotated[
        int, typer.Option("--steps", min=200, help="Number of steps of the loop to time at each size.")
    ] = 300,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="How many times to run the simulated hour.")] = 3,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Time the control loop with 100 to 10,000 instances, and a simulated hour and a plan with 10,000."""
    from homeostat.lab.bench import control as bench

    result = bench.measure(steps=steps, repeats=repeats, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    rows = [
        (
            f"{int(size):,}",
            str(result["steps"]),
            f"{result['step_ms_p50'][size]:.2f}",
            f"{result['step_ms_p99'][size]:.2f}",
        )
        for size in result["step_ms_p50"]
    ]
    columns = ("instances", "steps", "p50 ms", "p99 ms")
    print_table(columns, rows, right=columns)
    low, high = result["sim_hour_s_range"]
    print(f"growth exponent        {result['growth_exponent']:.2f} (1 is linear)")
    print(f"one simulated hour     {result['sim_hour_s']:.1f} s (from {low:.1f} to {high:.1f} s in {repeats} runs)")
    plan_times = ", ".join(f"{seconds:.2f} s ({name})" for name, seconds in result["plan_s"].items())
    print(f"a plan                 {plan_times}, for {result['plan_components']} components")


@app.command("service")
def service(
    queries: Annotated[int, typer.Option("--queries", min=5, help="Number of queries in the log.")] = 200,
    instances: Annotated[
        int, typer.Option("--instances", min=100, help="Number of instances of the running application.")
    ] = 10_000,
    days: Annotated[float, typer.Option("--days", min=0.01, help="Days of history in the log.")] = 7.0,
    batch: Annotated[
        float, typer.Option("--batch", min=1.0, help="Seconds between two batches in the history.")
    ] = 60.0,
    viewers: Annotated[int, typer.Option("--viewers", min=1, max=100, help="Number of open dashboards.")] = 20,
    cycles: Annotated[
        int, typer.Option("--cycles", min=5, help="Steps of the loop in each part of the six rounds.")
    ] = 10,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Time the dashboard on a large log, and the control loop with and without open dashboards."""
    from homeostat.lab.bench import dashboard as bench

    result = bench.measure(
        queries=queries,
        instances=instances,
        days=days,
        batch_s=batch,
        viewers=viewers,
        cycles=cycles,
        tell=say,
    )
    if deliver(result, json=json, keep=keep):
        return
    print_table(("figure", "value"), [(name, str(value)) for name, value in result.items()], right=("value",))


@app.command("noise")
def noise(
    days: Annotated[int, typer.Option("--days", min=1, help="Simulated days of noise without a change.")] = 20,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Number of overloads to detect, each with its own seed.")
    ] = 200,
    first_seed: Annotated[
        int, typer.Option("--first-seed", min=0, help="First seed. The settings were tuned on seeds below 100.")
    ] = 1000,
    engine: Annotated[str, typer.Option("--engine", help="Simulated engine: dataflow, microbatch or all.")] = "all",
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Count the false alarms on noise, and time how fast a real overload is detected."""
    from homeostat.lab.bench import noise as bench

    if engine not in ENGINES:
        raise ConfigError(f"unknown engine {engine!r}", where="--engine", fix=f"use one of {', '.join(ENGINES)}")
    say(f"simulating {days} days and {seeds} overloads on each engine; this takes minutes")
    result = bench.main(days=days, seeds=seeds, first_seed=first_seed, engine=engine)
    if deliver(result, json=json, keep=keep):
        return
    rows = [
        (name, key, format_figure(value))
        for name, figures in result["engines"].items()
        for key, value in figures.items()
    ]
    print_table(("engine", "figure", "value"), rows)


@app.command("models")
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


def _print_latency(measured: Mapping[str, Any]) -> None:
    low, high = measured["load_per_s"]
    print(
        f"from {low:,.0f} to {high:,.0f} rows/s and back, objective: p95 latency of at most "
        f"{measured['objective_p95_s']:g} s:"
    )
    print(f"  regulated  {measured['p95_s']:.1f} s with {measured['executors']:.1f} executors on average")
    for name, static in measured["static"].items():
        print(f"  {name}  {static['p95_s']:.1f} s" + ("" if static["holds"] else ", misses the objective"))


@app.command("convergence")
def convergence(json: JsonFlag = False, keep: KeepOption = None) -> None:
    """Count the steps to the right size in E7, E8 and 36 runs like E9, compared with DS2."""
    from homeostat.lab.bench import convergence as bench

    result = bench.measure(tell=say)
    if deliver(result, json=json, keep=keep):
        return
    columns = ("experiment", "noise", "policy", "steps", "instances at the end", "above the optimum", "unhealthy s")
    many = [(noise, run) for noise, measured in result["E9"].items() for run in measured["runs"]]
    rows = [
        (
            run["scenario"],
            noise,
            run["policy"],
            str(run["steps"]),
            "/".join(f"{value:g}" for value in run["final"].values()),
            "/".join(f"{value:g}" for value in run["above_the_optimum"].values()),
            f"{run['unhealthy_s']:.0f}",
        )
        for noise, run in (*(("-", run) for run in (*result["E7"], *result["E8"])), *many)
    ]
    print_table(columns, rows, right=("steps", "unhealthy s"))
    for noise, measured in result["E9"].items():
        for policy, totals in measured["policies"].items():
            steps = ", ".join(f"{runs} in {count}" for count, runs in totals["steps"].items())
            most = f"at most {totals['most_above_the_optimum']:g} above the optimum"
            print(f"E9, {noise} noise, {policy}: {steps} steps; {most}; {totals['below_the_optimum']} runs below it")


@app.command("preempt")
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
    seed: Annotated[int, typer.Option("--seed", help="Seed of the noise and of the unpredictable spikes.")] = 1,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Compare acting on a forecast with reactive policies and an oracle: time behind, and cost."""
    from homeostat.lab.bench import preempt as bench
    from homeostat.recorded_data import load_file

    cases = [bench.synthetic_case(days, seed), *(bench.from_trace(load_file.read(path), days) for path in trace or ())]
    result = bench.measure(cases, seed=seed, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    columns = ("load", "policy", "seconds behind", "executor hours", "actions", "ahead of a rise")
    rows = [
        (
            Path(name).name,
            policy,
            f"{run['violation_s']:.0f}",
            f"{run['executor_hours']:.1f}",
            str(run["actions"]),
            str(run["ahead"]),
        )
        for name, case in result["cases"].items()
        for policy, run in case["policies"].items()
    ]
    print_table(columns, rows, right=columns[2:])
    for name, case in result["cases"].items():
        share, cost = format_figure(case["violations_over_reactive"]), format_figure(case["cost_over_reactive"])
        print(f"{Path(name).name}: with the forecast {share} × the seconds behind and {cost} × the cost of reacting")


@app.command("skew")
def skew(
    only: Annotated[
        str, typer.Option("--only", metavar="ENGINE", help="Where to measure: simulator, spark or all.")
    ] = "all",
    exponents: Annotated[
        str, typer.Option("--exponents", metavar="X,X,…", help="Zipf exponents of the key distribution.")
    ] = "0,0.5,1,1.5,2",
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Measure the gain of spreading hot keys: throughput with and without it, and with evenly spread keys."""
    from homeostat.lab.bench import skew as bench

    if only not in (*bench.ENGINES, "all"):
        raise ConfigError(f"unknown engine {only!r}", where="--only", fix=f"use one of {', '.join(bench.ENGINES)}, all")
    result = bench.measure(
        engines=bench.ENGINES if only == "all" else (only,),
        exponents=numbers(exponents, "--exponents", at_least=0),
        tell=say,
    )
    if deliver(result, json=json, keep=keep):
        return
    columns = ("engine", "keys", "largest", "without /s", "with /s", "ideal /s", "gain", "share of ideal")
    rows = [
        (
            engine,
            case,
            f"{measured['largest_key']:.0%}",
            *(f"{measured[f'{side}_per_s']:,.0f}" for side in ("without", "with", "ideal")),
            f"{measured['gain']:.2f}",
            f"{measured['share_of_ideal']:.2f}",
        )
        for engine in bench.ENGINES
        for case, measured in result.get(engine, {}).items()
    ]
    print_table(columns, rows, right=columns[2:])


@app.command("synopses")
def synopses(
    keys: Annotated[
        int, typer.Option("--keys", min=1000, help="Number of distinct keys to feed into each synopsis.")
    ] = 10_000_000,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Check that the error and memory of every synopsis stay within their stated bounds."""
    from homeostat.lab.bench import synopses as bench

    result = bench.measure(keys=keys, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    columns = ("synopsis", "error", "stated", "bytes", "stated bytes", "within", "seconds")
    rows = [
        (
            name.replace("_", " "),
            *(format_figure(measured[key]) for key in ("error", "stated_error")),
            *(f"{measured[key]:,}" for key in ("bytes", "stated_bytes")),
            "yes" if measured["within"] else "no",
            f"{measured['seconds']:.1f}",
        )
        for name, measured in result["synopses"].items()
    ]
    print_table(columns, rows, right=columns[1:])


for _bench in (
    bench_mixes.mixes,
    bench_catchup.catchup,
    bench_endurance.endurance,
    bench_diagnosis.diagnosis,
    bench_forecast.forecast,
    bench_duel.duel,
    bench_report.report,
):
    app.command()(_bench)
bench_spark.register(app)
