"""`homeostat bench forecast`: how good forecasts of recorded loads are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from homeostat.cli.bench_keep import KeepOption, deliver
from homeostat.cli.figures import format_figure
from homeostat.cli.output import JsonFlag, print_table, say
from homeostat.cli.plugin_options import WithOption, load_plugins
from homeostat.core.errors import ConfigError


def forecast(
    trace: Annotated[
        list[Path],
        typer.Option("--trace", metavar="FILE", help="CSV file with times and numbers. Repeatable."),
    ],
    horizon: Annotated[
        list[str] | None,
        typer.Option("--horizon", metavar="TIME", help="Horizon. Repeatable. Default: 15 min, 1 h, 6 h and 1 d."),
    ] = None,
    origins: Annotated[
        int, typer.Option("--origins", min=4, help="Number of points in each load to forecast from.")
    ] = 24,
    with_: WithOption = None,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Forecast recorded loads from many points in time, and compare with the actual load and simpler forecasts."""
    from homeostat.lab.bench import forecast as bench
    from homeostat.models.forecast import CANDIDATES
    from homeostat.recorded_data import load_file
    from homeostat.strict.units import UnitError, parse_duration

    try:
        horizons_s = [parse_duration(each) for each in horizon] if horizon else bench.HORIZONS_S
    except UnitError as error:
        raise ConfigError(str(error), where="--horizon") from None
    if not min(horizons_s) > 0:
        raise ConfigError("must be above 0", where="--horizon", fix="write a time such as '1 h'")
    result = bench.measure(
        [load_file.read(path) for path in trace],
        horizons_s=horizons_s,
        origins=origins,
        candidates=(*CANDIDATES, *load_plugins("forecasters", with_)),
        tell=say,
    )
    if deliver(result, json=json, keep=keep):
        return
    _print_forecasts(result)


def _print_forecasts(result: Mapping[str, Any]) -> None:
    names = list(result["mean_mase"])
    columns = ("trace", "ahead", *names, "covered")
    rows = [
        (
            Path(trace).name,
            horizon,
            *(format_figure(cell["mase"].get(name)) for name in names),
            format_figure(cell["coverage"]),
        )
        for trace, measured in result["traces"].items()
        for horizon, cell in measured["horizons"].items()
    ]
    rows.append(
        (
            "mean",
            "",
            *(format_figure(result["mean_mase"][name]) for name in names),
            format_figure(result["mean_coverage"]),
        )
    )
    print_table(columns, rows, right=columns[1:], fold=("trace",))
    print(f"MASE; covered: share of the actual values within the {result['nominal_coverage']:.0%} interval")
    for name, ratio in result["champion_over"].items():
        worst = result["worst"].get(f"champion ÷ {name}")
        at_worst = f", at worst {worst['ratio']:.2f} ({worst['at']})" if worst else ""
        print(f"champion ÷ {name:<16} {ratio:.2f}{at_worst}")
