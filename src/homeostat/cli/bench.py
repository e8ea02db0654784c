"""`homeostat bench`: measurements of Homeostat itself."""

from __future__ import annotations

from typing import Annotated

import typer

from homeostat.cli.output import JsonFlag, print_json, print_table, say

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
def noise(json: JsonFlag = False) -> None:
    """Count needless actions under noise alone, and time how fast a real overload is found."""
    from homeostat.bench import noise as bench

    result = bench.main(json=json)
    if json:
        print_json(result)
