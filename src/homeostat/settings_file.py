"""Reads homeostat.toml. A flag overrides the environment, which overrides the file, which overrides the default.

Every value remembers where it came from.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BeforeValidator, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo

from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.core.guards import CostLimit
from homeostat.core.loop_state import Mode
from homeostat.core.objective import Objective
from homeostat.policies import dotted_paths, registry
from homeostat.settings import FileLimits, KafkaSettings, LogSettings, ObjectiveSettings, PluginSettings, Settings
from homeostat.store.address import PASSWORD_VARIABLE, LogAddress, log_address, without_password
from homeostat.strict import toml_problems, units
from homeostat.strict.toml_lines import KeyPath
from homeostat.strict.toml_reading import (
    ContradictionError,
    Document,
    Problem,
    Table,
    nearest,
)

FILE = "homeostat.toml"
PREFIX = "HOMEOSTAT_"
DEFAULT = "default"
OTHER_VARIABLES = frozenset({"HOMEOSTAT_DEBUG", "HOMEOSTAT_WEBHOOK", PASSWORD_VARIABLE})
# Kubernetes sets these variables for each service of the namespace, also for one named `homeostat`.
_SERVICE_LINK = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_[A-Z]+(_PROTO|_PORT|_ADDR)?)?)")
_NAME = re.compile(r"\w[\w.-]{0,99}")
_THROUGHPUT = ("throughput", "throughput.paper")
_LATENCY = "latency"


class FileSettings(Settings):
    """All keys that homeostat.toml may have."""

    policy: str = Field(
        registry.DEFAULT, description="a name from `homeostat policies`, or your own as `package.module:name`"
    )
    mode: Mode = Field(
        "advise",
        description="`observe` only records and alerts, `advise` shows what it would do, `earn` acts after its "
        "advice has been right three times, `regulate` acts",
    )
    store: Annotated[str, Field(min_length=1)] = Field(
        "homeostat.sqlite",
        description="SQLite file of the log, whose relative path starts at the working directory, or "
        "`postgresql://user@host/database`",
    )
    application: str = Field(
        "",
        description="the name by which a driver on another machine continues this application; "
        "without it, the directory identifies the application",
    )
    objective: ObjectiveSettings = ObjectiveSettings()
    log: LogSettings = LogSettings()
    files: FileLimits = FileLimits()
    kafka: KafkaSettings = KafkaSettings()

    @field_validator("application")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name and not _NAME.fullmatch(name):
            raise ContradictionError(f"'{name}' is not a name", fix="use letters, digits, '.', '_' and '-'")
        return name

    @field_validator("policy")
    @classmethod
    def _check_known(cls, name: str) -> str:
        module, colon, attribute = name.partition(":")
        if colon and not (module and attribute):
            raise ContradictionError(f"'{name}' is not a dotted path", fix="write package.module:name")
        if not colon and name not in registry.names():
            raise ContradictionError(f"unknown policy '{name}'", fix=nearest(name, registry.names()))
        return name


class Entry(NamedTuple):
    """One key of homeostat.toml."""

    path: tuple[str, ...]
    info: FieldInfo

    @property
    def key(self) -> str:
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        return PREFIX + "_".join(self.path).upper()

    @property
    def default(self) -> object:
        """The default as you would write it in the file; None if there is none."""
        value = self.info.get_default(call_default_factory=True)
        to_text = _FORMATS.get(self.parser)
        return value if to_text is None or value is None else to_text(value)

    @property
    def parser(self) -> object:
        """The function of `units` that parses the value, if it has a unit."""
        inner = (part for member in get_args(self.info.annotation) for part in getattr(member, "__metadata__", ()))
        parsers = (part.func for part in (*self.info.metadata, *inner) if isinstance(part, BeforeValidator))
        return next(parsers, None)


_FORMATS: dict[object, Callable[[float], str]] = {
    units.parse_duration: units.format_duration,
    units.parse_rate: units.format_rate,
    units.parse_share: units.format_share,
    units.parse_size: units.format_size,
}


def entries() -> tuple[Entry, ...]:
    """All keys: first the objective, then how Homeostat pursues it."""
    fields = FileSettings.model_fields
    names = sorted(fields, key=lambda name: name in Settings.model_fields)
    keys: list[Entry] = []
    for name in names:
        kind = fields[name].annotation
        if isinstance(kind, type) and issubclass(kind, Table):
            keys += [Entry((name, key), info) for key, info in kind.model_fields.items()]
        else:
            keys.append(Entry((name,), fields[name]))
    return tuple(keys)


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it was written, and its origin: `homeostat.toml:3`, `HOMEOSTAT_POLICY`, `--policy` or `default`."""

    raw: object
    origin: str


@dataclass(frozen=True, slots=True)
class Config:
    policy: str
    mode: Mode
    store: LogAddress
    objective: Objective
    settings: Settings
    values: Mapping[str, Value]
    log: LogSettings = LogSettings()
    files: FileLimits = FileLimits()
    kafka: KafkaSettings = KafkaSettings()
    application: str = ""

    @property
    def sections(self) -> dict[str, dict[str, object]]:
        """The settings of the loop that were set, as they were written, for `registry.build`."""
        tables: dict[str, dict[str, object]] = {}
        for key, value in self.values.items():
            section, dot, name = key.partition(".")
            if dot and section in Settings.model_fields and value.origin != DEFAULT:
                tables.setdefault(section, {})[name] = value.raw
        return tables


def load(
    path: str | Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
) -> Config:
    """Load the configuration, or raise one ConfigError. The default path is homeostat.toml in the working directory.

    `flags` has the structure of the file: `{"policy": "ds2", "guards": {"cooldown": "2 min"}}`. A flag that is None
    counts as not given.
    """
    return _read(_sources(path, environ, flags or {}))


def check(path: str | Path) -> Config:
    """The configuration from the file only, after checking that every plug-in in it can be imported and created."""
    sources = _sources(path, {}, {})
    config = _read(sources)
    problems = list(_plug_in_problems(config))
    if problems:
        raise sources.error_of(problems)
    return config


def show(
    path: str | Path | None, environ: Mapping[str, str], flags: Mapping[str, object]
) -> list[tuple[str, object, str]]:
    """Every key with its value, as you would write it, and the origin of the value."""
    return [(key, value.raw, value.origin) for key, value in load(path, environ, flags).values.items()]


class _Override(NamedTuple):
    where: str
    value: object


@dataclass(frozen=True, slots=True)
class _Sources:
    """The file, and the values from flags and the environment that override it."""

    document: Document
    overrides: Mapping[KeyPath, _Override]

    def merge(self) -> dict[str, Any]:
        data = {key: dict(value) if isinstance(value, Mapping) else value for key, value in self.document.data.items()}
        for (name, *rest), override in self.overrides.items():
            if not rest:
                data[str(name)] = override.value
            elif isinstance(table := data.setdefault(str(name), {}), dict):
                table[rest[0]] = override.value
        return data

    def value(self, entry: Entry) -> Value:
        if entry.path in self.overrides:
            return Value(self.overrides[entry.path].value, self.overrides[entry.path].where)
        table: Any = self.document.data
        for key in entry.path[:-1]:
            table = table.get(key, {})
        if entry.path[-1] in table:
            return Value(table[entry.path[-1]], self.document.where(entry.path))
        return Value(entry.default, DEFAULT)

    def error_of(self, problems: Iterable[Problem]) -> ConfigError:
        """An error with all problems of the file; if the file has none, the first problem from elsewhere."""
        problems_with_origin = [(problem, self._origin(problem.path)) for problem in problems]
        of_the_file = [problem for problem, where in problems_with_origin if not where]
        if of_the_file:
            return self.document.error_of(of_the_file)
        problem, where = problems_with_origin[0]
        return ConfigError(problem.what, where=where, fix=problem.fix)

    def _origin(self, path: KeyPath) -> str:
        """The flag or variable that caused the problem; empty if it was the file.

        A contradiction may be reported for a key that is not set. Then other keys of its table caused it.
        """
        if path[:2] in self.overrides:
            return self.overrides[path[:2]].where
        others = [override.where for key, override in self.overrides.items() if key[0] == path[0]]
        if path in self.document.lines or not others:
            return ""
        of_the_file = [self.document.where(path)] if path[:1] in self.document.lines else []
        return " and ".join([*of_the_file, *others])


def _sources(path: str | Path | None, environ: Mapping[str, str], flags: Mapping[str, object]) -> _Sources:
    if path is None and not Path(FILE).exists():
        document = Document(FILE, {})
    else:
        document = Document.open(FILE if path is None else path)
    overrides = dict(_from_flags(flags))
    overrides |= {key: value for key, value in _from_environment(environ) if key not in overrides}
    return _Sources(document, overrides)


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[KeyPath, _Override]]:
    for name, value in flags.items():
        if isinstance(value, Mapping):
            for key, inner in value.items():
                yield (name, key), _Override(f"--set {name}.{key}", inner)
        elif value is not None:
            yield (name,), _Override(f"--{name}", value)


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[KeyPath, _Override]]:
    by_variable = {entry.variable: entry for entry in entries()}
    for name, text in environ.items():
        if not name.startswith(PREFIX) or name in OTHER_VARIABLES or _SERVICE_LINK.fullmatch(name):
            continue
        if name not in by_variable:
            raise ConfigError("unknown setting", where=name, fix=_nearest_variable(name, list(by_variable)))
        if text.strip():
            yield by_variable[name].path, _Override(name, _from_text(by_variable[name].info, text.strip()))


def _nearest_variable(name: str, variables: list[str]) -> str:
    """Compare the names without their common prefix, which would make all of them look similar."""
    word, words = name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in variables]
    close = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {PREFIX}{close[0]}?" if close else "list the settings with `homeostat config show`"


def _from_text(info: FieldInfo, text: str) -> object:
    """A variable holds what follows the = in the file. Text needs no quotes, and a list needs no brackets."""
    if info.annotation is str or get_origin(info.annotation) is Literal:
        return text
    if get_origin(info.annotation) is list and not text.startswith("["):
        return [each.strip() for each in text.split(",")]
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if len(table) == 1 else text


def _read(sources: _Sources) -> Config:
    try:
        table = FileSettings.model_validate(sources.merge())
    except ValidationError as error:
        problems = list(toml_problems.problems(FileSettings, error))
    else:
        objective = _objective(table.objective)
        # Without an objective here the application may state one; the policy is checked against that one later.
        problems = list(contradictions(table.policy, objective)) if objective != Objective() else []
    if problems:
        raise sources.error_of(problems)
    return Config(
        policy=table.policy,
        mode=table.mode,
        store=log_address(table.store),
        objective=objective,
        settings=Settings(**{name: getattr(table, name) for name in Settings.model_fields}),
        values={entry.key: _printable(sources.value(entry)) for entry in entries()},
        log=table.log,
        files=table.files,
        kafka=table.kafka,
        application=table.application,
    )


def _printable(value: Value) -> Value:
    return Value(without_password(value.raw), value.origin) if isinstance(value.raw, str) else value


def _objective(table: ObjectiveSettings) -> Objective:
    return Objective(table.throughput, table.lag, table.latency, table.cost_limit, table.model_error, table.catch_up)


def contradictions(policy: str, objective: Objective) -> Iterator[Problem]:
    """Why this policy cannot pursue this objective; empty if it can."""
    if policy == _LATENCY and objective.latency_p95_s is None and objective.lag_s is None:
        yield Problem(
            ("policy",),
            f"policy '{policy}' needs a latency or lag objective",
            'set latency or lag in [objective], such as "30 s"',
        )
    if policy in _THROUGHPUT and objective.throughput_per_s is None:
        yield Problem(
            ("policy",),
            f"policy '{policy}' needs a throughput objective",
            'set throughput in [objective], such as "50 k/s"',
        )
    if objective.cost_limit is not None and not _keeps_cost_limit(policy):
        yield Problem(
            ("objective", "cost_limit"),
            f"policy '{policy}' ignores 'cost_limit'",
            "remove the limit, or choose another policy",
        )


def _keeps_cost_limit(policy: str) -> bool:
    """Whether the policy has the guard, or never acts. A user's own policy is assumed to."""
    if ":" in policy or policy == "alert":
        return True
    built_policy = registry.build(policy, scenario_peak_per_s=1.0)
    return any(isinstance(guard, CostLimit) for guard in built_policy.guards)


def _plug_in_problems(config: Config) -> Iterator[Problem]:
    for kind in PluginSettings.model_fields:
        for number, path in enumerate(getattr(config.settings.plugins, kind)):
            yield from _problems_of(("plugins", kind, number), path, partial(dotted_paths.parts, [path], kind))
    if ":" in config.policy:
        yield from _problems_of(("policy",), config.policy, partial(dotted_paths.policy, config.policy))


def _problems_of(at: KeyPath, path: str, make: Callable[[], object]) -> Iterator[Problem]:
    try:
        make()
    except HomeostatError as error:
        yield Problem(at, f"'{path}': {error.what}", error.fix)
    except Exception as error:
        reason = " ".join(str(error).split())
        yield Problem(at, f"'{path}': creating it raised {type(error).__name__}: {reason}")
