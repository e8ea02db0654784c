"""`homeostat demo`: watch Homeostat manage an application, on Spark or in the simulator."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli import scenario_arguments
from homeostat.cli import sim_tables as comparing
from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, clock, console, print_json, say
from homeostat.core.errors import ConfigError, HomeostatError

if TYPE_CHECKING:
    from homeostat.core.policy_definition import Policy
    from homeostat.lab.demonstration import Variant, Viewer
    from homeostat.lab.demonstration_feed import Feed
    from homeostat.log_views.timeline import Timeline
    from homeostat.sim.scenario.spec import Scenario
    from homeostat.sim.simulation import RunResult

SPARK, SIM = "spark", "sim"
SCENARIO = "demo"
HOME = Path(".homeostat")
LIVE_FOR_S = 40.0


def demo(
    engine: Annotated[
        str, typer.Option("--engine", metavar="spark|sim", help="Run on Spark on this machine, or in the simulator.")
    ] = SPARK,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="On Spark: also run without Homeostat, and with Spark's dynamic allocation."),
    ] = False,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="On Spark: read the rows from a Kafka broker that the demo starts.")
    ] = False,
    scenario: Annotated[
        str | None,
        typer.Option("--scenario", metavar="NAME|FILE", help="Simulator: scenario or TOML file to run."),
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option("--speed", min=0.1, help="Simulator: simulated seconds per second. Default: the demo takes 40 s."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live/--no-live", help="Draw a live view on the terminal, or print one line per event.")
    ] = True,
    picture: Annotated[Path, typer.Option("--picture", metavar="FILE", help="Picture to write, .png or .svg.")] = Path(
        "out/demo.svg"
    ),
    report: Annotated[Path, typer.Option("--report", metavar="FILE", help="On Spark: HTML report to write.")] = Path(
        "out/demo.html"
    ),
    show: Annotated[
        bool, typer.Option("--dashboard/--no-dashboard", help="On Spark: also serve the dashboard.")
    ] = True,
    json: JsonFlag = False,
) -> None:
    """Watch Homeostat manage a word count on Spark while the load changes and an executor becomes slow."""
    _check_engine(engine, {"--compare": compare, "--kafka": kafka}, {"--scenario": scenario, "--speed": speed})
    live = live and not json and _can_draw()
    if engine == SPARK:
        _on_spark(compare, kafka, live, picture, report if not json else None, show, json)
    else:
        _simulate(scenario or SCENARIO, speed, live, picture, json)


def _check_engine(engine: str, on_spark: Mapping[str, object], in_simulator: Mapping[str, object]) -> None:
    """Refuse options of the other engine; those that were not given are False or None."""
    if engine not in (SPARK, SIM):
        raise ConfigError(f"unknown engine {engine!r}", where="--engine", fix=f"use {SPARK} or {SIM}")
    other = SIM if engine == SPARK else SPARK
    for option, value in (in_simulator if engine == SPARK else on_spark).items():
        if value is not None and value is not False:
            raise ConfigError(f"this option needs --engine {other}", where=option, fix=f"add --engine {other}")


def _can_draw() -> bool:
    out = console()
    return sys.stdout.isatty() and not out.is_dumb_terminal and out.encoding.startswith("utf")


# On Spark


def _on_spark(
    compare: bool, kafka: bool, live: bool, picture: Path, report: Path | None, show: bool, json: bool
) -> None:
    from homeostat.cli import pictures
    from homeostat.cli.demo_display import print_comparison, print_summary
    from homeostat.lab.demonstration import LOG, REGULATED, SPARKS_OWN, UNREGULATED, Performance, Plan, perform_each

    def perform(plan: Plan, variant: Variant) -> Timeline:
        screen, viewer = _viewer(variant, live, json)
        with _dashboard(variant, show and not json), screen:
            timeline = Performance(plan, variant, HOME, viewer, feed).run()
        if not json:
            print_summary(timeline)
        return timeline

    pictures.check_format(picture)  # fail now, not after minutes
    feed = _feed(kafka)
    variants = (REGULATED, UNREGULATED, SPARKS_OWN) if compare else (REGULATED,)
    timelines = perform_each(variants, Plan(), perform)
    if json:
        print_json([timeline.as_json() for timeline in timelines])
    elif compare:
        print_comparison(timelines)
    _picture(lambda draw: draw.timelines(timelines, picture, "A word count on Spark"), picture)
    if report is not None:
        _report(HOME / REGULATED.name / LOG, report)
    if not json:
        say(f"To see why: homeostat log --store {HOME / REGULATED.name / LOG}, then homeostat explain ID")
    if not timelines[0].healthy or any(timeline.differences for timeline in timelines):
        raise typer.Exit(EXIT_UNHEALTHY)


def _feed(kafka: bool) -> Callable[[Path], Feed]:
    if not kafka:
        from homeostat.lab.demonstration_feed import ExperimentFeed

        return ExperimentFeed
    from homeostat.lab.kafka.feed import KafkaFeed, require_kafka

    require_kafka(lambda line: say(f"homeostat: {line}"))
    return KafkaFeed


def _dashboard(variant: Variant, show: bool) -> AbstractContextManager[None]:
    from homeostat.lab.demonstration import LOG
    from homeostat.web.beside_run import dashboard

    home = HOME / variant.name
    output = HOME / f"{variant.name}-dashboard.out"  # outside the home, which is emptied first
    return dashboard(home / LOG, output, lambda line: say(f"homeostat: {line}")) if show else nullcontext()


def _report(log: Path, out: Path) -> None:
    """If the report cannot be written, the demo prints a message and does not fail."""
    from homeostat.cli.log import open_log
    from homeostat.cli.report import write

    try:
        with open_log(log) as store:
            write(store, store.runs()[-1].name, out)
    except HomeostatError as error:
        say(f"homeostat: no report: {error.line}")
    else:
        say(f"Report: {out}")


def _viewer(variant: Variant, live: bool, json: bool) -> tuple[AbstractContextManager[object], Viewer]:
    from homeostat.cli.demo_display import Lines, Picture, Silent

    def tell(line: str) -> None:
        say(f"homeostat: {line}")

    if json:
        return nullcontext(), Silent(tell)
    if not live:
        print(f"A word count on Spark, {variant.title}")
        return nullcontext(), Lines(lambda line: print(line, flush=True), tell)
    from rich.live import Live

    screen = Live(console=console(), auto_refresh=False)
    return screen, Picture(variant, screen)


# In the simulator


def _simulate(scenario: str, speed: float | None, live: bool, picture: Path, json: bool) -> None:
    from homeostat.sim.simulation import simulate

    loaded_scenario = scenario_arguments.load_scenario(scenario)
    policy = scenario_arguments.policy_for(loaded_scenario, source=scenario)
    if json:
        first = simulate(loaded_scenario, policy)
    elif live:
        first = _live(loaded_scenario, policy, speed or loaded_scenario.duration_s / LIVE_FOR_S)
    else:
        first = _plain(loaded_scenario, policy)
    family = policy.name.removesuffix(".paper")
    rivals = [name for name in (family, f"{family}.paper", "static") if name != policy.name]
    results = [first, *scenario_arguments.run_all(loaded_scenario, scenario_arguments.fitting(loaded_scenario, rivals))]
    if json:
        print_json([result.as_json() for result in results])
    else:
        print("\nThe same load and noise under other policies (static is sized for the peak):")
        comparing.print_comparison(results)
    _picture(lambda draw: draw.compare(results, picture, f"{loaded_scenario.name}: {loaded_scenario.title}"), picture)


def _live(scenario: Scenario, policy: Policy, speed: float) -> RunResult:
    from homeostat.cli.live_display import watch
    from homeostat.sim.simulation import simulate

    screen, view = watch(scenario, policy.name, console(), speed)
    with screen:
        return simulate(scenario, policy, on_step=view.on_step)


def _plain(scenario: Scenario, policy: Policy) -> RunResult:
    from homeostat.cli.live_display import plain_events
    from homeostat.sim.simulation import simulate

    print(f"{scenario.name}: {scenario.title} (policy {policy.name}, {clock(scenario.duration_s)} simulated)")
    return simulate(scenario, policy, on_step=plain_events(print))


def _picture(draw: Callable[[ModuleType], None], path: Path) -> None:
    """Without matplotlib, the demo prints a message and does not fail."""
    from homeostat.cli import pictures

    try:
        draw(pictures)
    except HomeostatError as error:
        say(f"homeostat: no picture: {error.line}")
    else:
        say(f"Picture: {path}")
