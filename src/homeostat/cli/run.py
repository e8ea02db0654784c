"""`homeostat run`: start an application, regulated."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.output import JsonFlag, print_json, say
from homeostat.cli.scenario_arguments import merged, parse_settings
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.runtime.launch import Launch

DIRECTORY = Path(".homeostat")
OUTPUT = Path("logs") / "driver.out"
SERVER_OUTPUT = Path("logs") / "dashboard.out"
LOADING_LIMIT_S = 120.0
# What Homeostat sets itself, so that a value given here would be overridden, or override it, without a word.
NOT_BY_CONF = {
    "spark.master": ("the cluster is named by an option of its own", "write --master URL"),
    # They go together with the knobs and the lock of the directory: in another place they would not.
    "spark.sql.streaming.checkpointLocation": (
        "Homeostat keeps the checkpoints itself, in checkpoints/<query> of its directory",
        "leave it out; --directory names another directory",
    ),
    "spark.sql.shuffle.partitions": (
        "the partitions of the state are a knob of each query",
        "leave it out; @hs.pipeline(state_partitions=…) says where it begins",
    ),
}


def run(
    app: Annotated[str, typer.Argument(metavar="APP.PY[:NAME]", help="The application file, and one pipeline of it.")],
    master: Annotated[
        str, typer.Option("--master", metavar="URL", help="The cluster; without it one starts here and stops again.")
    ] = "",
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="homeostat.toml of this directory if left out.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option("--mode", metavar="MODE", help="observe, advise, earn or regulate.")
    ] = None,
    policy: Annotated[str | None, typer.Option("--policy", metavar="NAME", help="See `homeostat policies`.")] = None,
    store: Annotated[
        Path | None, typer.Option("--store", metavar="FILE", envvar="HOMEOSTAT_STORE", help="The file of the log.")
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--directory", metavar="DIR", help="Checkpoints, logs and knobs; .homeostat/<app> if left out."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, max=50, help="Of the cluster that starts here.")] = 3,
    cores: Annotated[int, typer.Option("--cores", min=1, max=64, help="Of each of these workers.")] = 4,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="For Spark; may be repeated.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.KEY=VALUE", help="A setting of the loop; may be repeated."),
    ] = None,
    for_: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Stop after this time, such as '10 min'.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--dashboard/--no-dashboard", help="Show it in the browser, on this machine alone.")
    ] = True,
    json: JsonFlag = False,
) -> None:
    """Start a streaming application and regulate it: without --master on a cluster of its own."""
    from homeostat import config as configuration
    from homeostat.cli.scenario_arguments import parse_mode
    from homeostat.runtime.launch import Launch
    from homeostat.runtime.supervisor import INTERRUPTED, Supervisor
    from homeostat.web.beside_run import dashboard

    path = _existing(app)
    flags: dict[str, object] = {
        "policy": policy,
        "mode": parse_mode(mode) if mode is not None else None,
        "store": str(store.resolve()) if store is not None else None,
        **merged({}, parse_settings(settings or [])),
    }
    loaded = configuration.load(config, flags=flags)
    seconds, spark_settings = _seconds(for_), _spark_conf(conf or [])
    launch = Launch(
        app=app,
        master=master,
        directory=str((directory or DIRECTORY / path.stem).resolve()),
        config=str(config) if config is not None else None,
        flags=flags,
        conf=spark_settings,
        for_s=seconds,
    )
    _preflight(launch)
    output = Path(launch.directory) / OUTPUT if json else None
    supervisor = Supervisor(launch, workers=workers, cores=cores, say=_tell, log=output)
    with dashboard(loaded.store, Path(launch.directory) / SERVER_OUTPUT, _tell) if show else nullcontext():
        code = supervisor.run()
    if json:
        print_json(
            {"exit_code": code, "restarts": supervisor.restarts, "directory": launch.directory, "output": str(output)}
        )
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code:
        raise typer.Exit(code)


def _tell(line: str) -> None:
    say(f"homeostat: {line}")


def _existing(app: str) -> Path:
    path = Path(app if app.endswith(".py") else app.rpartition(":")[0] or app)
    if not path.is_file():
        raise ConfigError("there is no such application file", where=str(path), fix="name a Python file")
    return path


def _preflight(launch: Launch) -> None:
    """Refused before a cluster is started for it. The user's code runs in a process of its own, never in this one."""
    command = [sys.executable, "-m", "homeostat.runtime.preflight", launch.to_json()]
    try:
        checked = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LOADING_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(
            f"loading it has not ended after {LOADING_LIMIT_S:.0f} s",
            where=launch.app,
            fix="start nothing at the top of the file: a pipeline function returns the query, Homeostat starts it",
        ) from error
    if checked.returncode:
        said = [line for line in checked.stderr.splitlines() if line.startswith("homeostat: ")]
        say(said[-1] if said else f"homeostat: {launch.app}: loading it ended with code {checked.returncode}")
        raise typer.Exit(checked.returncode if said else ConfigError.exit_code)


def _spark_conf(assignments: list[str]) -> dict[str, str]:
    pairs = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not (equals and key.startswith("spark.")):
            raise ConfigError(f"cannot read {assignment!r}", where="--conf", fix="write spark.some.key=value")
        if key in NOT_BY_CONF:
            what, fix = NOT_BY_CONF[key]
            raise ConfigError(what, where=f"--conf {key}", fix=fix)
        pairs[key] = value
    return pairs


def _seconds(text: str | None) -> float | None:
    from homeostat.strict import units

    try:
        return None if text is None else units.parse_duration(text)
    except units.UnitError as error:
        raise ConfigError(str(error), where="--for") from error
