"""`homeostat run`: start an application and manage it."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.find_application import StoreOption
from homeostat.cli.output import JsonFlag, print_json, say
from homeostat.cli.scenario_arguments import merge_settings, parse_mode, parse_settings
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.runtime.launch import Launch
    from homeostat.store.address import LogAddress

DIRECTORY = Path(".homeostat")
OUTPUT = Path("logs") / "driver.out"
SERVER_OUTPUT = Path("logs") / "dashboard.out"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
LOADING_LIMIT_S = 120.0
# Homeostat sets these itself. A value given with --conf would silently override it, or be overridden.
NOT_BY_CONF = {
    "spark.master": ("this setting has its own option", "use --master URL"),
    # Checkpoints, knobs and the lock belong together in one directory.
    "spark.sql.streaming.checkpointLocation": (
        "Homeostat keeps the checkpoints in checkpoints/<query> of its directory",
        "remove it; choose the directory with --directory",
    ),
    "spark.sql.shuffle.partitions": (
        "Homeostat manages the number of state partitions of each query",
        "remove it; set the initial number with @hs.pipeline(state_partitions=…)",
    ),
}

AppArgument = Annotated[
    str,
    typer.Argument(
        metavar="APP.PY[:NAME]", help="Python file with the pipelines. Add :NAME to start only one of them."
    ),
]
MasterOption = Annotated[
    str,
    typer.Option(
        "--master", metavar="URL", help="Spark master. Default: start a local cluster and stop it at the end."
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings file. Default: homeostat.toml in the working directory."),
]
ModeOption = Annotated[
    str | None,
    typer.Option("--mode", metavar="MODE", help="observe, advise, earn or regulate. Default: advise."),
]
PolicyOption = Annotated[
    str | None, typer.Option("--policy", metavar="NAME", help="Policy to use; see `homeostat policies`.")
]
DirectoryOption = Annotated[
    Path | None,
    typer.Option(
        "--directory", metavar="DIR", help="Where to keep checkpoints, logs and knobs. Default: .homeostat/<app>."
    ),
]
WorkersOption = Annotated[int, typer.Option("--workers", min=1, max=50, help="Number of workers of the local cluster.")]
CoresOption = Annotated[int, typer.Option("--cores", min=1, max=64, help="Cores of each local worker.")]
ConfOption = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Spark setting. Repeat for several settings.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Homeostat setting. Repeat for several settings."),
]
ForOption = Annotated[str | None, typer.Option("--for", metavar="TIME", help="Stop after this time, such as '10 min'.")]
DashboardOption = Annotated[
    bool, typer.Option("--dashboard/--no-dashboard", help="Serve the dashboard on this machine while the job runs.")
]


def run(
    app: AppArgument,
    master: MasterOption = "",
    config: ConfigOption = None,
    mode: ModeOption = None,
    policy: PolicyOption = None,
    store: StoreOption = None,
    directory: DirectoryOption = None,
    workers: WorkersOption = 3,
    cores: CoresOption = 4,
    conf: ConfOption = None,
    settings: SetOption = None,
    for_: ForOption = None,
    show: DashboardOption = True,
    json: JsonFlag = False,
) -> None:
    """Start a streaming application and manage it. Without --master it runs on a local cluster."""
    from homeostat import settings_file
    from homeostat.runtime.launch import Launch
    from homeostat.store.address import resolved

    for option, place in (("APP.PY", app), ("--directory", directory), ("--config", config)):
        _require_path(option, str(place or ""))
    path = _existing(app)
    flags: dict[str, object] = {
        "policy": policy,
        "mode": parse_mode(mode) if mode is not None else None,
        "store": str(resolved(_own_log("--store", store))) if store is not None else None,
        **merge_settings({}, parse_settings(settings or [])),
    }
    log = settings_file.load(config, flags=flags).store
    if store is None:
        log = _own_log("store", log)
    for_s, spark_settings = _seconds(for_), _spark_conf(conf or [])
    launch = Launch(
        app=app,
        master=master,
        directory=str((directory or DIRECTORY / path.stem).resolve()),
        config=str(config) if config is not None else None,
        flags=flags,
        conf=spark_settings,
        for_s=for_s,
    )
    _preflight(launch)
    _supervise(launch, log, workers=workers, cores=cores, show=show, json=json)


def _supervise(launch: Launch, log: LogAddress, *, workers: int, cores: int, show: bool, json: bool) -> None:
    from homeostat.runtime.supervisor import INTERRUPTED, Supervisor
    from homeostat.web.beside_run import dashboard

    output = Path(launch.directory) / OUTPUT if json else None
    supervisor = Supervisor(launch, workers=workers, cores=cores, say=_say, log=output)
    with dashboard(log, Path(launch.directory) / SERVER_OUTPUT, _say) if show else nullcontext():
        code = supervisor.run()
    if json:
        print_json(
            {"exit_code": code, "restarts": supervisor.restarts, "directory": launch.directory, "output": str(output)}
        )
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code:
        raise typer.Exit(code)


def _say(line: str) -> None:
    say(f"homeostat: {line}")


def _own_log(option: str, store: str | LogAddress) -> LogAddress:
    """The log that the processes of this run write to. The password for it is in their environment."""
    from homeostat.store.address import hand_down, log_address

    log = log_address(store)
    if isinstance(log, Path):
        _require_path(option, str(store))
    hand_down(log)
    return log


def _require_path(option: str, place: str) -> None:
    """A URI such as hdfs://name/dir would be taken for a local path. Path has already merged the slashes."""
    if _URI.match(place):
        raise ConfigError(
            f"{place} is a URI, and only local paths are supported", where=option, fix="give a path on this machine"
        )


def _existing(app: str) -> Path:
    path = Path(app if app.endswith(".py") else app.rpartition(":")[0] or app)
    if not path.is_file():
        raise ConfigError("no such application file", where=str(path), fix="give the path of a Python file")
    return path


def _preflight(launch: Launch) -> None:
    """Find mistakes before a cluster starts. The user's code runs in a separate process, never in this one."""
    command = [sys.executable, "-m", "homeostat.runtime.preflight", launch.to_json()]
    try:
        check = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LOADING_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(
            f"importing this file took more than {LOADING_LIMIT_S:.0f} s",
            where=launch.app,
            fix="do not start queries at the top level of the file: return them from pipeline functions",
        ) from error
    if check.returncode:
        messages = [line for line in check.stderr.splitlines() if line.startswith("homeostat: ")]
        say(messages[-1] if messages else f"homeostat: {launch.app}: importing failed with code {check.returncode}")
        raise typer.Exit(check.returncode if messages else ConfigError.exit_code)


def _spark_conf(assignments: list[str]) -> dict[str, str]:
    pairs = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not (equals and key.startswith("spark.")):
            raise ConfigError(f"cannot parse {assignment!r}", where="--conf", fix="write spark.some.key=value")
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
