"""`homeostat sim`: run scenarios in the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli import scenario_arguments, sim_tables
from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, clock, heading, picture_option, print_json, print_table, say
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.core.cycle import Trace
    from homeostat.core.loop_state import Mode, State
    from homeostat.core.policy_definition import Policy
    from homeostat.sim.scenario.spec import Scenario
    from homeostat.sim.simulation import RunResult, SimulatedEngine

app = typer.Typer(name="sim", help="Run scenarios in the simulator.", no_args_is_help=True)

ScenarioName = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help="Scenario from `homeostat sim list`, or a TOML file.")
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, help="Random seed. Default: the seed of the scenario.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Policy setting. Repeat for several settings."),
]


@app.command("list")
def list_scenarios(json: JsonFlag = False) -> None:
    """List the scenarios that come with Homeostat."""
    from homeostat.sim.scenario import catalogue
    from homeostat.sim.scenario.spec import DataflowSpec

    scenarios = []
    for name in catalogue.names():
        scenario = catalogue.load(name)
        engine = "dataflow" if isinstance(scenario.engine, DataflowSpec) else "microbatch"
        scenarios.append((scenario, engine))
    if json:
        print_json(
            [
                {"name": s.name, "engine": engine, "duration_s": s.duration_s, "policy": s.policy, "title": s.title}
                for s, engine in scenarios
            ]
        )
        return
    rows = [(s.name, engine, clock(s.duration_s), s.policy, s.title) for s, engine in scenarios]
    print_table(("name", "engine", "duration", "policy", "title"), rows, right=("duration",))


@app.command("run")
def run_scenario(
    scenario: ScenarioName,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="POLICY", help="Policy to run. Default: the scenario's own.")
    ] = None,
    seed: SeedOption = None,
    mode: Annotated[
        str, typer.Option("--mode", metavar="MODE", help="observe, advise, earn or regulate.")
    ] = "regulate",
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="LOG", help="Write the log of the run to this file or database."),
    ] = None,
    set_: SetOption = None,
    json: JsonFlag = False,
) -> None:
    """Simulate a scenario under one policy.

    Exit code 3: the application was not healthy at the end.
    """
    from homeostat.sim.simulation import simulate

    loaded_scenario = scenario_arguments.load_scenario(scenario)
    chosen = scenario_arguments.policy_for(
        loaded_scenario, policy, scenario_arguments.parse_settings(set_ or []), scenario
    )
    parsed_mode = scenario_arguments.parse_mode(mode)
    if store is None:
        result = simulate(loaded_scenario, chosen, seed=seed, mode=parsed_mode)
    else:
        result = _run_with_log(loaded_scenario, chosen, seed, parsed_mode, store)
    if json:
        print_json(result.as_json())
    else:
        sim_tables.print_run(loaded_scenario, result)
    if result.healthy_since_s is None:
        raise typer.Exit(EXIT_UNHEALTHY)


@app.command("compare")
def compare_policies(
    scenario: ScenarioName,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", metavar="POLICY", help="Policy to compare; repeatable. Default: all policies that act."
        ),
    ] = None,
    seed: SeedOption = None,
    set_: SetOption = None,
    picture: Annotated[Path | None, picture_option("load, throughput and instances")] = None,
    json: JsonFlag = False,
) -> None:
    """Simulate a scenario under several policies, with the same load and noise, and compare them."""
    if picture is not None:
        from homeostat.cli import pictures

        pictures.check(picture)
    loaded_scenario = scenario_arguments.load_scenario(scenario)
    settings = scenario_arguments.parse_settings(set_ or [])
    results = scenario_arguments.run_all(
        loaded_scenario, policy or scenario_arguments.acting_policies(loaded_scenario), seed, settings, scenario
    )
    title = f"{loaded_scenario.name}: {loaded_scenario.title}"
    if json:
        print_json([result.as_json() for result in results])
    else:
        heading(f"{title} (seed {results[0].seed}, {clock(loaded_scenario.duration_s)})")
        sim_tables.print_comparison(results)
    if picture is not None:
        pictures.compare(results, picture, title=title)
        say(f"Picture: {picture}")


@app.command("fit")
def fit_scenario(
    event_log: Annotated[
        Path,
        typer.Argument(
            metavar="EVENTLOG", help="Spark event log: a file, a rolling log, or a directory (its newest log is used)."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the scenario to this file instead of stdout."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Fit the simulator to a real run, and print it as a scenario for `sim run`."""
    from homeostat.sim.fit.scenario_fit import fit
    from homeostat.sim.scenario.toml_text import to_toml
    from homeostat.spark.outside.logged_run import record

    fitted = fit(record(event_log))
    text = to_toml(fitted.scenario)
    if out is not None:
        _write(out, text)
    if json:
        print_json(fitted.as_json())
    elif out is None:
        print(text, end="")
    for note in fitted.scenario.notes:
        say(f"Note: {note}")
    say(f"Fitted to {fitted.agreement}")
    if out is not None:
        say(f"Scenario: {out}; run it with `homeostat sim run {out}`")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"cannot write the scenario: {reason}", where=str(path)) from error


def _run_with_log(scenario: Scenario, policy: Policy, seed: int | None, mode: Mode, log: str) -> RunResult:
    from homeostat.runtime.model_keeper import ModelKeeper
    from homeostat.sim.simulation import simulate
    from homeostat.store.address import log_address
    from homeostat.store.opening import open_store

    path = log_address(log)
    store = open_store(path)
    try:
        used_seed = scenario.seed if seed is None else seed
        run = scenario_arguments.new_run_name(store, f"{scenario.name}/{policy.name}/{used_seed}")
        keeper = ModelKeeper(store, run)

        def learn(_trace: Trace, state: State, engine: SimulatedEngine) -> None:
            keeper.look(policy, state, engine.now_s)

        result = simulate(scenario, policy, seed=seed, store=store, run=run, mode=mode, on_step=learn)
    finally:
        store.close()
    say(f"Log: run {run} in {path}; read it with `homeostat log --store {path}`")
    return result
