"""`homeostat bench`: measure Homeostat itself."""

from __future__ import annotations

from typing import Annotated

import typer

from homeostat.cli import (
    bench_catchup,
    bench_diagnosis,
    bench_duel,
    bench_endurance,
    bench_forecast,
    bench_mixes,
    bench_models,
    bench_preempt,
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
    bench_models.models,
    bench_mixes.mixes,
    bench_catchup.catchup,
    bench_endurance.endurance,
    bench_diagnosis.diagnosis,
    bench_forecast.forecast,
    bench_preempt.preempt,
    bench_duel.duel,
    bench_report.report,
):
    app.command()(_bench)
bench_spark.register(app)
