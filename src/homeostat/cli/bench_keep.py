"""`--keep`: keep what a bench measured, with the command, the date, the commit, the machine and the seeds."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homeostat._version import __version__
from homeostat.cli.output import plain, print_json, say
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.lab.bench.circumstances import Commit

_NO_PART_OF_THE_MEASUREMENT = ("keep", "json")


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where to keep the result. What can change during a long measurement is read when it begins."""

    path: Path
    context: typer.Context
    commit: Commit | None
    began_on: date = field(default_factory=lambda: datetime.now(UTC).date())
    began_s: float = field(default_factory=time.monotonic)

    def keep(self, result: Mapping[str, Any]) -> None:
        from homeostat.lab.bench.circumstances import this_machine
        from homeostat.lab.bench.kept_results import KeptResult, write

        short = short_paths(self.context.params.values())
        kept = KeptResult(
            bench=str(self.context.info_name),
            command=command_line(self.context, short),
            measured_on=self.began_on,
            took_s=round(time.monotonic() - self.began_s, 1),
            version=__version__,
            commit=self.commit,
            seeds=seeds(self.context.params, result),
            machine=this_machine(),
            result=without_directories(plain(result), short),
        )
        write(kept, self.path)
        say(f"kept in {self.path}")


def _begin(context: typer.Context, target: Any) -> Keeping | None:
    """Finds out before a long measurement whether its result can be kept."""
    if target is None:
        return None
    from homeostat.lab.bench.circumstances import this_commit
    from homeostat.lab.bench.kept_results import file_for

    path = file_for(str(context.info_name), target)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot create the directory: {error.strerror}", where=str(path.parent)) from error
    return Keeping(path, context, this_commit())


KeepOption = Annotated[
    Keeping | None,
    typer.Option(
        "--keep",
        metavar="PATH",
        parser=Path,
        callback=_begin,
        help="Also write the result to this directory or .json file, for `bench report`.",
    ),
]


def deliver(result: Mapping[str, Any], *, json: bool, keep: Keeping | None) -> bool:
    """Keeps the result if that is wanted, and prints it if JSON is wanted. Returns whether it was printed."""
    if keep is not None:
        keep.keep(result)
    if json:
        print_json(result)
    return json


def seeds(parameters: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """The seeds that the options name, and those that the bench reports."""
    reported = {name: value for name, value in result.items() if "seed" in name and isinstance(value, int)}
    return {**reported, **{name: value for name, value in parameters.items() if "seed" in name}}


def command_line(context: typer.Context, short: Mapping[str, str]) -> str:
    """The command with the options that were given, so that it can be repeated."""
    return shlex.join([*context.command_path.split(), *_options(context, short)])


def _options(context: typer.Context, short: Mapping[str, str]) -> Iterator[str]:
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or name in _NO_PART_OF_THE_MEASUREMENT:
            continue
        value = context.params[name]
        for each in value if isinstance(value, list | tuple) else (value,):
            yield parameter.opts[0]
            if each is not True:
                yield short.get(str(each), str(each))


def short_paths(values: Any) -> dict[str, str]:
    """A name for each path among the values that leads out of the working directory: a kept result is published."""
    short: dict[str, str] = {}
    for value in values:
        for each in value if isinstance(value, list | tuple) else (value,):
            path = Path(each) if isinstance(each, str | Path) else None
            if path is not None and str(each) not in short and (path.is_absolute() or ".." in path.parts):
                same = sum(Path(other).name == path.name for other in short)
                short[str(each)] = f"{path.name} ({same + 1})" if same else path.name
    return short


def without_directories(value: Any, short: Mapping[str, str]) -> Any:
    """The result with short names instead of these paths, in its keys and values."""
    if isinstance(value, str):
        for path, name in short.items():
            value = value.replace(path, name)
        return value
    if isinstance(value, Mapping):
        return {without_directories(key, short): without_directories(each, short) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [without_directories(each, short) for each in value]
    return value
