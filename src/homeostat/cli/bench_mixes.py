"""`homeostat bench mixes`: how well several problems at once are fixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from homeostat.cli.bench_keep import KeepOption, deliver
from homeostat.cli.figures import format_figure
from homeostat.cli.output import JsonFlag, print_table, say
from homeostat.core.errors import ConfigError

_ALL = "all"


def mixes(
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Number of runs of each mix, each with its own seed.")
    ] = 20,
    first_seed: Annotated[
        int, typer.Option("--first-seed", min=0, help="First seed. The settings were tuned on seeds below 1000.")
    ] = 1000,
    mix: Annotated[
        list[str] | None,
        typer.Option(
            "--mix",
            metavar="KIND+KIND",
            help="Combination of problems to run, such as the kinds A+B. Repeatable. Default: all combinations.",
        ),
    ] = None,
    engine: Annotated[str, typer.Option("--engine", help="Simulated engine: dataflow, microbatch or all.")] = _ALL,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Fix two or three problems at once, and compare the results with the paper's table and an oracle."""
    from homeostat.lab.bench import mixes as bench
    from homeostat.lab.bench.mix_cases import ENGINES, KINDS

    if engine not in (*ENGINES, _ALL):
        raise ConfigError(f"unknown engine {engine!r}", where="--engine", fix=f"use one of {', '.join(ENGINES)}, all")
    wanted_mixes = [tuple(each.split("+")) for each in mix or ()]
    for kind in (kind for each in wanted_mixes for kind in each):
        if kind not in KINDS:
            raise ConfigError(f"unknown kind {kind!r}", where="--mix", fix=f"use some of {', '.join(KINDS)}")
    result = bench.measure(
        seeds=seeds,
        first_seed=first_seed,
        engines=ENGINES if engine == _ALL else (engine,),
        mix=wanted_mixes,
        tell=say,
    )
    if deliver(result, json=json, keep=keep):
        return
    _print(result)


def _print(result: Mapping[str, Any]) -> None:
    rows = [
        (
            engine_name,
            name,
            policy,
            format_figure(figures["unhealthy_s"]["median"]),
            format_figure(figures["over_oracle"]["median"]),
            format_figure(figures["over_oracle"]["worst"]),
            f"{figures['plans']:.1f}",
            str(figures["wrong"]),
            str(figures["false_remedies"]),
            str(figures["reverted"]),
        )
        for engine_name, measured in result["engines"].items()
        for name, policies in ({**measured["mixes"], "all": measured["all"]}).items()
        for policy, figures in policies.items()
    ]
    columns = ("engine", "mix", "policy", "unhealthy s", "× oracle", "worst", "plans", "wrong", "false", "reverted")
    print_table(columns, rows, right=columns[3:])
