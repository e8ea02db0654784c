"""`homeostat demo`: watch an application regulate itself, without anything but this package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli import report, running
from homeostat.cli.output import JsonFlag, clock, console, print_json, say
from homeostat.core.errors import HomeostatError

if TYPE_CHECKING:
    from homeostat.core.policy import Policy
    from homeostat.service.simulation import RunResult
    from homeostat.sim.spec import Scenario

LIVE_FOR_S = 40.0


def demo(
    scenario: Annotated[
        str, typer.Option("--scenario", metavar="NAME|FILE", help="A shipped scenario or a TOML file.")
    ] = "demo",
    speed: Annotated[
        float | None,
        typer.Option("--speed", min=0.1, help="Simulated seconds per second; if left out it lasts 40 seconds."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live/--no-live", help="Draw it on the terminal as it happens, or print lines at once.")
    ] = True,
    picture: Annotated[
        Path, typer.Option("--picture", metavar="FILE", help="Where the picture goes, as .png or .svg.")
    ] = Path("out/demo.svg"),
    json: JsonFlag = False,
) -> None:
    """Watch a simulated application regulate itself; then see how other policies fare on the same load and noise."""
    from homeostat.service.simulation import simulate

    loaded = running.load_scenario(scenario)
    policy = running.policy_for(loaded, source=scenario)
    if json:
        watched = simulate(loaded, policy)
    elif live and _can_draw():
        watched = _live(loaded, policy, speed or loaded.duration_s / LIVE_FOR_S)
    else:
        watched = _plain(loaded, policy)
    family = policy.name.removesuffix(".paper")
    rivals = [name for name in (family, f"{family}.paper", "static") if name != policy.name]
    results = [watched, *running.run_all(loaded, running.fitting(loaded, rivals))]
    if json:
        print_json([result.as_json() for result in results])
    else:
        print("\nThe same load and noise under other policies (static is sized for the peak):")
        report.print_comparison(results)
    _draw(results, picture, f"{loaded.name}: {loaded.title}")


def _can_draw() -> bool:
    out = console()
    return sys.stdout.isatty() and not out.is_dumb_terminal and out.encoding.startswith("utf")


def _live(scenario: Scenario, policy: Policy, speed: float) -> RunResult:
    from homeostat.cli.live import watch
    from homeostat.service.simulation import simulate

    screen, view = watch(scenario, policy.name, console(), speed)
    with screen:
        return simulate(scenario, policy, on_step=view.on_step)


def _plain(scenario: Scenario, policy: Policy) -> RunResult:
    from homeostat.cli.live import plain_events
    from homeostat.service.simulation import simulate

    print(f"{scenario.name}: {scenario.title} (policy {policy.name}, {clock(scenario.duration_s)} simulated)")
    return simulate(scenario, policy, on_step=plain_events(print))


def _draw(results: list[RunResult], path: Path, title: str) -> None:
    """The picture is an extra: without matplotlib the demo says so and is none the worse."""
    from homeostat import pictures

    try:
        pictures.compare(results, path, title)
    except HomeostatError as error:
        say(f"homeostat: no picture: {error.line}")
    else:
        say(f"Picture: {path}")
