"""`homeostat bench`: the measurements that need Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from homeostat.cli.bench_keep import KeepOption, deliver
from homeostat.cli.figures import format_figure, numbers, share
from homeostat.cli.output import JsonFlag, print_table, say
from homeostat.core.errors import ConfigError

_SIDES = ("spark", "simulator")


def register(app: typer.Typer) -> None:
    for command in (overhead, heal, twin, state, chaos):
        app.command(command.__name__)(command)


def overhead(
    pairs: Annotated[
        int, typer.Option("--pairs", min=1, help="Pairs of segments, one with and one without the manager.")
    ] = 100,
    batches: Annotated[int, typer.Option("--batches", min=2, max=100, help="Batches per segment.")] = 4,
    tasks: Annotated[
        str, typer.Option("--tasks", metavar="N,N,…", help="Tasks per batch, for measuring the CPU time of the driver.")
    ] = "10,100,1000",
    kafka: Annotated[
        bool, typer.Option("--kafka", help="The job reads from a Kafka broker that the benchmark starts.")
    ] = False,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Measure on Spark how much the manager slows a CPU-bound job and its driver."""
    from homeostat.lab.bench import overhead as bench

    sizes = [int(size) for size in numbers(tasks, "--tasks", at_least=4)]
    if kafka:
        from homeostat.lab.kafka.feed import require_kafka

        require_kafka(lambda line: say(f"homeostat: {line}"))
    result = bench.measure(pairs=pairs, batches=batches, tasks=sizes, kafka=kafka, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    interval = format_figure(result["throughput_ratio_interval"])
    print(f"throughput with ÷ without  {result['throughput_ratio']:.3f} ({interval}, {pairs} pairs)")
    columns = ("tasks", "CPU s with", "CPU s without", "batch s with", "batch s without")
    rows = [
        (size, *(format_figure(measured[side][key]) for key in ("cpu_s", "batch_s") for side in ("with", "without")))
        for size, measured in result["driver_cpu_s_per_batch"].items()
    ]
    print_table(columns, rows, right=columns)


def heal(
    runs: Annotated[
        int, typer.Option("--runs", min=1, help="Runs per factor, plus the same number without a fault.")
    ] = 20,
    factors: Annotated[
        str, typer.Option("--factors", metavar="X,X,…", help="How many times slower the slow executor is.")
    ] = "2,4",
    seed: Annotated[int, typer.Option("--seed", help="Seed that chooses the executors and the order of the runs.")] = 1,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Slow down executors of a real application, and count how often Homeostat replaces exactly these."""
    from homeostat.lab.bench import heal as bench

    result = bench.measure(runs=runs, factors=numbers(factors, "--factors", at_least=1.1), seed=seed, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    columns = ("times slower", "runs", "within 5 batches", "at all", "batches until replaced")
    rows = [
        (
            factor,
            str(measured["healed"]["of"]),
            share(measured["healed_within_5"]),
            share(measured["healed"]),
            format_figure(measured["batches_until_replaced"]["median"]),
        )
        for factor, measured in result["slowed"].items()
    ]
    print_table(columns, rows, right=columns)
    print(f"false replacements             {share(result['false_replacements'])}")
    print(f"clean runs with a replacement  {share(result['clean_runs_with_a_replacement'])}")


def twin(
    only: Annotated[
        str,
        typer.Option(
            "--only",
            metavar="PART",
            help="What to measure: fit (batch durations), experiments, one of E1 to E4, or all.",
        ),
    ] = "all",
    scale: Annotated[
        float, typer.Option("--scale", min=0.1, max=10, help="Factor for the length of all runs on Spark.")
    ] = 1.0,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Fit the simulator to real runs, and compare it with other real runs."""
    from homeostat.lab.bench import twin as bench
    from homeostat.lab.bench.twin_experiments import EXPERIMENTS

    parts = (*bench.PARTS, *(each.name for each in EXPERIMENTS), "all")
    if only not in parts:
        raise ConfigError(f"unknown part {only!r}", where="--only", fix=f"use one of {', '.join(parts)}")
    result = bench.measure(parts=bench.PARTS if only == "all" else (only,), scale=scale, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    if "median_error" in result:
        print(f"median error of the batch duration     {result['median_error']:.0%}")
        print(f"batches between simulated p10 and p90  {result['coverage']:.0%}")
    rows = [
        (name, *(f"{', '.join(runs[side]['actions']) or 'nothing'} → {runs[side]['executors']}" for side in _SIDES))
        for name, runs in result.get("experiments", {}).items()
    ]
    if rows:
        print_table(("experiment", "on Spark", "in the simulator"), rows)


def state(
    keys: Annotated[
        str, typer.Option("--keys", metavar="N,N,…", help="State sizes to measure, in keys.")
    ] = "10000,100000,1000000",
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Measurements per size. The median is printed.")] = 3,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Measure on Spark how long a change of state partitions pauses a query, compared with a restart."""
    from homeostat.lab.bench import state as bench

    sizes = [int(size) for size in numbers(keys, "--keys", at_least=100)]
    result = bench.measure(keys=sizes, repeats=repeats, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    rows = [
        (f"{int(size):,}", what, f"{seconds:.2f}")
        for size, measured in result["keys"].items()
        for what, seconds in _flat(measured)
    ]
    print_table(("keys", "what", "seconds"), rows, right=("keys", "seconds"))


def chaos(
    minutes: Annotated[float, typer.Option("--minutes", min=0.0, help="Inject faults for this long.")] = 30.0,
    seed: Annotated[int, typer.Option("--seed", help="Random seed that chooses the faults.")] = 1,
    only: Annotated[
        str, typer.Option("--only", metavar="NAME,NAME,…", help="Kinds of fault to inject. Default: all.")
    ] = "",
    faults: Annotated[int | None, typer.Option("--faults", min=1, help="Stop after this many faults.")] = None,
    directory: Annotated[
        Path | None, typer.Option("--directory", metavar="DIR", help="Empty directory for all files of the benchmark.")
    ] = None,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Inject random faults into a real application under `homeostat run`, and check that it recovers from each."""
    from homeostat.lab.bench import chaos as bench

    kinds = bench.kinds_named([name.strip() for name in only.split(",") if name.strip()])
    result = bench.measure(minutes=minutes, seed=seed, kinds=kinds, most=faults, directory=directory, tell=say)
    if deliver(result, json=json, keep=keep):
        return
    columns = ("fault", "injected", "survived", "median s", "longest s")
    rows = [
        (
            name,
            str(measured["injected"]),
            str(measured["survived"]),
            *(format_figure(measured["recover_s"][key]) for key in ("median", "max")),
        )
        for name, measured in result["kinds"].items()
    ]
    print_table(columns, rows, right=columns[1:])
    print(f"survived            {result['survived']} of {result['injected']} (seed {seed})")
    differences = f"{result['lost']} lost, {result['doubled']} duplicated, {result['misplaced']} misplaced"
    print(f"rows                {differences} of {result['rows']:,}")
    print(f"unexpected actions  {len(result['unasked_actions'])}")
    for action in result["unasked_actions"]:
        print(f"  {action['id']} {action['kind']}: {action['why']}")
    leftovers = result["leftover_processes"]
    print(f"leftover processes  {'not checked' if leftovers is None else len(leftovers)}")


def _flat(measured: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Every number in seconds, with the path of keys that leads to it."""
    for name, value in measured.items():
        path = f"{above} {name}".strip().replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, path)
        elif isinstance(value, float):
            yield path.removesuffix(" s"), value
