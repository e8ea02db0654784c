"""`homeostat bench duel`: the default policy and the rules of other systems on the same recorded loads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from homeostat.cli.bench_keep import KeepOption, deliver
from homeostat.cli.output import JsonFlag, print_table, say
from homeostat.core.errors import ConfigError

_Traces = Annotated[
    list[Path], typer.Option("--trace", metavar="FILE", help="CSV file with a recorded load to test on. Repeatable.")
]
_Tuning = Annotated[
    list[Path] | None,
    typer.Option(
        "--tune", metavar="FILE", help="CSV file with another recorded load, to search for settings on. Repeatable."
    ),
]
_Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", help="Policy to run. Repeatable. Default: the default policy and all rules to compare it with."
    ),
]
_Engine = Annotated[str, typer.Option("--engine", help="Simulated engine: microbatch, dataflow or all.")]
_Seeds = Annotated[int, typer.Option("--seeds", min=1, help="Number of runs of each policy on each trace.")]
_Hours = Annotated[
    float, typer.Option("--hours", min=0.1, help="Hours to simulate, counted back from the end of the trace.")
]
_Most = Annotated[
    int,
    typer.Option(
        "--most", min=2, help="Maximum number of executors. The peak of the load needs three quarters of them."
    ),
]
_Budget = Annotated[int, typer.Option("--budget", min=1, help="Number of settings to try for each policy.")]
_App = Annotated[
    Path | None,
    typer.Option(
        "--app",
        metavar="FILE",
        help="Scenario that defines the application and the engine, such as one that `sim fit` wrote.",
    ),
]
_Faults = Annotated[bool, typer.Option("--faults", help="Also slow down one instance, and crash another.")]
_Picture = Annotated[
    Path | None, typer.Option("--picture", metavar="FILE", help="Draw cost against violations, as .png or .svg.")
]
_COLUMNS = (
    "engine",
    "trace",
    "policy",
    "violation s",
    "p95 lag",
    "p99 lag",
    "÷ oracle",
    "actions",
    "needless",
    "pause",
)


def duel(
    trace: _Traces,
    tune: _Tuning = None,
    policy: _Policies = None,
    engine: _Engine = "microbatch",
    seeds: _Seeds = 5,
    hours: _Hours = 18.0,
    most: _Most = 24,
    budget: _Budget = 8,
    app: _App = None,
    faults: _Faults = False,
    picture: _Picture = None,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Run policies on recorded loads, and compare violations, lag, cost and actions over several seeds."""
    from homeostat.cli import duel_picture
    from homeostat.lab.bench import duel as bench
    from homeostat.lab.bench.duel_loads import from_trace
    from homeostat.recorded_data import load_file

    engines = _engines(engine)
    _check_policies(policy or ())
    if picture is not None:
        duel_picture.check(picture)
    application = _application(app, engines)
    result = bench.measure(
        [from_trace(load_file.read(path), hours) for path in trace],
        [from_trace(load_file.read(path), hours) for path in tune or ()],
        [bench.Ring(each, most, application, faults) for each in engines],
        policies=policy or bench.POLICIES,
        seeds=seeds,
        budget=budget,
        tell=say,
    )
    if picture is not None:
        duel_picture.draw(result, picture)
    if not deliver(result, json=json, keep=keep):
        _print(result)


def _engines(engine: str) -> Sequence[str]:
    from homeostat.lab.bench.duel_loads import ENGINES

    if engine not in (*ENGINES, "all"):
        raise ConfigError(f"unknown engine {engine!r}", where="--engine", fix=f"use one of {', '.join(ENGINES)}, all")
    return ENGINES if engine == "all" else (engine,)


def _check_policies(names: Sequence[str]) -> None:
    from homeostat.lab.bench import duel as bench
    from homeostat.policies import registry

    for name in names:
        if name not in (bench.LARGEST, *registry.names()):
            registry.build(name)  # raises an error that says which names there are


def _application(path: Path | None, engines: Sequence[str]) -> Any:
    from homeostat.lab.bench import duel as bench
    from homeostat.sim.scenario import catalogue

    if path is None:
        return None
    application = catalogue.load(str(path))
    for engine in engines:
        bench.check(application, engine)
    return application


def _print(result: Mapping[str, Any]) -> None:
    from homeostat.lab.bench import duel as bench

    print_table(_COLUMNS, bench.table(result), right=_COLUMNS[3:])
    for one in result["rounds"]:
        for label, others in one["dominates"].items():
            print(f"{Path(one['trace']).name}, {one['engine']}: {label} is better than {', '.join(others)} in both")
