"""`homeostat bench`: measurements of Homeostat itself."""

from __future__ import annotations

from typing import Annotated

import typer

from homeostat.cli.output import JsonFlag, print_json, print_table, say
from homeostat.core.errors import ConfigError

ENGINES = ("dataflow", "microbatch", "all")

app = typer.Typer(name="bench", help="Measure Homeostat itself.", no_args_is_help=True)


@app.command("control")
def control(
    steps: Annotated[int, typer.Option("--steps", min=200, help="Timed steps of the loop at each size.")] = 300,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="How often the simulated hour is run.")] = 3,
    json: JsonFlag = False,
) -> None:
    """Time one step of the loop at 100, 1,000 and 10,000 instances, and a simulated hour at 10,000."""
    from homeostat.bench import control as bench

    result = bench.measure(steps=steps, repeats=repeats, tell=say)
    if json:
        print_json(result)
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


@app.command("noise")
def noise(
    days: Annotated[int, typer.Option("--days", min=1, help="Simulated days of noise alone.")] = 20,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Overloads to find, each with a seed of its own.")] = 200,
    first_seed: Annotated[
        int, typer.Option("--first-seed", min=0, help="Seeds count from here; settings were tuned on those below 100.")
    ] = 1000,
    engine: Annotated[str, typer.Option("--engine", help="dataflow, microbatch or all.")] = "all",
    json: JsonFlag = False,
) -> None:
    """Count the actions that noise alone leads to, and how fast a real overload is found, with the same settings."""
    from homeostat.bench import noise as bench

    if engine not in ENGINES:
        raise ConfigError(f"there is no engine {engine!r}", where="--engine", fix=f"one of {', '.join(ENGINES)}")
    say(f"{days} simulated days and {seeds} overloads on each engine; this takes minutes")
    result = bench.main(days=days, seeds=seeds, first_seed=first_seed, engine=engine)
    if json:
        print_json(result)
        return
    rows = [(name, key, _shown(value)) for name, found in result["engines"].items() for key, value in found.items()]
    print_table(("engine", "figure", "value"), rows)


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return " to ".join(_shown(item) for item in value)
    return f"{value:.3g}" if isinstance(value, float) else "-" if value is None else str(value)
