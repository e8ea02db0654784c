"""homeostat.toml. A value is a flag's, else the environment's, else the file's, else the default, and knows which."""

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
from homeostat.settings import PluginSettings, Settings
from homeostat.strict import toml_problems, units
from homeostat.strict.toml_lines import KeyPath
from homeostat.strict.toml_reading import (
    ContradictionError,
    Document,
    PositiveDuration,
    PositiveError,
    PositiveRate,
    Problem,
    Table,
    nearest,
)

FILE = "homeostat.toml"
PREFIX = "HOMEOSTAT_"
DEFAULT = "default"
OTHER_VARIABLES = frozenset({"HOMEOSTAT_DEBUG", "HOMEOSTAT_WEBHOOK"})
# Kubernetes gives every container these for each service of its namespace, one called `homeostat` included.
_SERVICE_LINK = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_\d+_[A-Z]+(_PROTO|_PORT|_ADDR)?)?)")
_THROUGHPUT = ("throughput", "throughput.paper")
_LATENCY = "latency"


class ObjectiveSettings(Table):
    """What is wanted. Nothing set means dynamic resource provisioning: no pressure, nothing idle."""

    throughput: PositiveRate | None = Field(default=None, description="take at least this, or all that arrives")
    lag: PositiveDuration | None = Field(default=None, description="be at most this far behind")
    latency: PositiveDuration | None = Field(
        default=None, description="95 % of the rows from arrival to commit within this"
    )
    cost_limit: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="the most instances that may be paid for"
    )
    model_error: PositiveError | None = Field(
        default=None,
        description="by how much predictions of time may have been off for the models still to choose the sizes; "
        "goes above `largest_error` of `[planning]`",
    )


class FileSettings(Settings):
    """Everything that homeostat.toml may hold."""

    policy: str = Field(
        registry.DEFAULT, description="a name from `homeostat policies`, or one's own as `package.module:name`"
    )
    mode: Mode = Field(
        "advise",
        description="`observe` only sees and alerts, `advise` says what it would do, `earn` acts once its advice has"
        " proved right, `regulate` acts",
    )
    store: Annotated[str, Field(min_length=1)] = Field(
        "homeostat.sqlite", description="the file of the log; a relative path starts at the working directory"
    )
    objective: ObjectiveSettings = ObjectiveSettings()

    @field_validator("policy")
    @classmethod
    def _known(cls, name: str) -> str:
        module, colon, attribute = name.partition(":")
        if colon and not (module and attribute):
            raise ContradictionError(f"'{name}' is not a dotted path", fix="write package.module:name")
        if not colon and name not in registry.names():
            raise ContradictionError(f"there is no policy '{name}'", fix=nearest(name, registry.names()))
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
        """As one would write it in the file; None if it is not set."""
        value = self.info.get_default(call_default_factory=True)
        shown = _FORMATS.get(self.parser)
        return value if shown is None or value is None else shown(value)

    @property
    def parser(self) -> object:
        """The function of `units` that reads it, if it has a unit."""
        inner = (part for member in get_args(self.info.annotation) for part in getattr(member, "__metadata__", ()))
        found = (part.func for part in (*self.info.metadata, *inner) if isinstance(part, BeforeValidator))
        return next(found, None)


_FORMATS: dict[object, Callable[[float], str]] = {
    units.parse_duration: units.format_duration,
    units.parse_rate: units.format_rate,
    units.parse_share: units.format_share,
}


def entries() -> tuple[Entry, ...]:
    """Every key there is: what is wanted first, then how it is pursued."""
    fields = FileSettings.model_fields
    names = sorted(fields, key=lambda name: name in Settings.model_fields)
    found: list[Entry] = []
    for name in names:
        kind = fields[name].annotation
        if isinstance(kind, type) and issubclass(kind, Table):
            found += [Entry((name, key), info) for key, info in kind.model_fields.items()]
        else:
            found.append(Entry((name,), fields[name]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Value:
    """As it was written, and where: `homeostat.toml:3`, `HOMEOSTAT_POLICY`, `--policy` or `default`."""

    written: object
    origin: str


@dataclass(frozen=True, slots=True)
class Config:
    policy: str
    mode: Mode
    store: Path
    objective: Objective
    settings: Settings
    values: Mapping[str, Value]

    @property
    def sections(self) -> dict[str, dict[str, object]]:
        """What was set of the loop's settings, as it was written: what `registry.build` takes."""
        tables: dict[str, dict[str, object]] = {}
        for key, value in self.values.items():
            section, dot, name = key.partition(".")
            if dot and section in Settings.model_fields and value.origin != DEFAULT:
                tables.setdefault(section, {})[name] = value.written
        return tables


def load(
    path: str | Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, object] | None = None,
) -> Config:
    """The configuration, or one ConfigError. Without a path it is homeostat.toml of the working directory, if any.

    `flags` has the shape of the file: `{"policy": "ds2", "guards": {"cooldown": "2 min"}}`; None is not given.
    """
    return _read(_sources(path, environ, flags or {}))


def check(path: str | Path) -> Config:
    """The configuration of the file alone, once all that it names has been found and could be made."""
    sources = _sources(path, {}, {})
    config = _read(sources)
    problems = list(_plug_in_problems(config))
    if problems:
        raise sources.refused(problems)
    return config


def show(
    path: str | Path | None, environ: Mapping[str, str], flags: Mapping[str, object]
) -> list[tuple[str, object, str]]:
    """Every key, its value as one would write it, and where that comes from."""
    return [(key, value.written, value.origin) for key, value in load(path, environ, flags).values.items()]


class _Given(NamedTuple):
    where: str
    value: object


@dataclass(frozen=True, slots=True)
class _Sources:
    """The file, and what flags and the environment put above it."""

    document: Document
    above: Mapping[KeyPath, _Given]

    def merged(self) -> dict[str, Any]:
        data = {key: dict(value) if isinstance(value, Mapping) else value for key, value in self.document.data.items()}
        for (name, *rest), given in self.above.items():
            if not rest:
                data[str(name)] = given.value
            elif isinstance(table := data.setdefault(str(name), {}), dict):
                table[rest[0]] = given.value
        return data

    def value(self, entry: Entry) -> Value:
        if entry.path in self.above:
            return Value(self.above[entry.path].value, self.above[entry.path].where)
        table: Any = self.document.data
        for key in entry.path[:-1]:
            table = table.get(key, {})
        if entry.path[-1] in table:
            return Value(table[entry.path[-1]], self.document.where(entry.path))
        return Value(entry.default, DEFAULT)

    def refused(self, problems: Iterable[Problem]) -> ConfigError:
        """All problems of the file; if it has none, the first from elsewhere."""
        placed = [(problem, self._above(problem.path)) for problem in problems]
        of_the_file = [problem for problem, where in placed if not where]
        if of_the_file:
            return self.document.refused(of_the_file)
        problem, where = placed[0]
        return ConfigError(problem.what, where=where, fix=problem.fix)

    def _above(self, path: KeyPath) -> str:
        """The flag or variable to blame; empty if it is the file.

        A contradiction may be laid at a key that nobody set: then it is due to others of its table, wherever set.
        """
        if path[:2] in self.above:
            return self.above[path[:2]].where
        others = [given.where for key, given in self.above.items() if key[0] == path[0]]
        if path in self.document.lines or not others:
            return ""
        of_the_file = [self.document.where(path)] if path[:1] in self.document.lines else []
        return " and ".join([*of_the_file, *others])


def _sources(path: str | Path | None, environ: Mapping[str, str], flags: Mapping[str, object]) -> _Sources:
    if path is None and not Path(FILE).exists():
        document = Document(FILE, {})
    else:
        document = Document.open(FILE if path is None else path)
    given = dict(_from_flags(flags))
    given |= {key: value for key, value in _from_environment(environ) if key not in given}
    return _Sources(document, given)


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[KeyPath, _Given]]:
    for name, value in flags.items():
        if isinstance(value, Mapping):
            for key, inner in value.items():
                yield (name, key), _Given(f"--set {name}.{key}", inner)
        elif value is not None:
            yield (name,), _Given(f"--{name}", value)


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[KeyPath, _Given]]:
    known = {entry.variable: entry for entry in entries()}
    for name, text in environ.items():
        if not name.startswith(PREFIX) or name in OTHER_VARIABLES or _SERVICE_LINK.fullmatch(name):
            continue
        if name not in known:
            raise ConfigError("is no setting of Homeostat", where=name, fix=_nearest_variable(name, list(known)))
        if text.strip():
            yield known[name].path, _Given(name, _from_text(known[name].info, text.strip()))


def _nearest_variable(name: str, known: list[str]) -> str:
    """Compared without the prefix, which would make every name look alike."""
    word, words = name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in known]
    close = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {PREFIX}{close[0]}?" if close else "`homeostat config show` lists the settings"


def _from_text(info: FieldInfo, text: str) -> object:
    """A variable holds what stands behind the = in the file; text does without quotes, a list without brackets."""
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
        table = FileSettings.model_validate(sources.merged())
    except ValidationError as error:
        problems = list(toml_problems.problems(FileSettings, error))
    else:
        objective = _objective(table.objective)
        # Where nothing is wanted here, the application may say what is: then the policy is held against that.
        problems = list(contradictions(table.policy, objective)) if objective != Objective() else []
    if problems:
        raise sources.refused(problems)
    return Config(
        policy=table.policy,
        mode=table.mode,
        store=Path(table.store),
        objective=objective,
        settings=Settings(**{name: getattr(table, name) for name in Settings.model_fields}),
        values={entry.key: sources.value(entry) for entry in entries()},
    )


def _objective(wanted: ObjectiveSettings) -> Objective:
    return Objective(wanted.throughput, wanted.lag, wanted.latency, wanted.cost_limit, wanted.model_error)


def contradictions(policy: str, objective: Objective) -> Iterator[Problem]:
    """Why this policy cannot pursue such an objective; nothing if it can."""
    if policy == _LATENCY and objective.latency_p95_s is None and objective.lag_s is None:
        yield Problem(
            ("policy",),
            f"policy '{policy}' has no latency or lag to hold",
            'set latency or lag in [objective], such as "30 s"',
        )
    if policy in _THROUGHPUT and objective.throughput_per_s is None:
        yield Problem(
            ("policy",),
            f"policy '{policy}' has no throughput to reach",
            'set throughput in [objective], such as "50 k/s"',
        )
    if objective.cost_limit is not None and not _keeps_cost_limit(policy):
        yield Problem(
            ("objective", "cost_limit"),
            f"policy '{policy}' would not keep to 'cost_limit'",
            "remove it, or choose another policy",
        )


def _keeps_cost_limit(policy: str) -> bool:
    """Whether it has the guard, or never acts. Of a policy of the user's own nobody can tell."""
    if ":" in policy or policy == "alert":
        return True
    built = registry.build(policy, scenario_peak_per_s=1.0)
    return any(isinstance(guard, CostLimit) for guard in built.guards)


def _plug_in_problems(config: Config) -> Iterator[Problem]:
    for kind in PluginSettings.model_fields:
        for number, path in enumerate(getattr(config.settings.plugins, kind)):
            yield from _tried(("plugins", kind, number), path, partial(dotted_paths.parts, [path], kind))
    if ":" in config.policy:
        yield from _tried(("policy",), config.policy, partial(dotted_paths.policy, config.policy))


def _tried(at: KeyPath, path: str, make: Callable[[], object]) -> Iterator[Problem]:
    try:
        make()
    except HomeostatError as error:
        yield Problem(at, f"'{path}': {error.what}", error.fix)
    except Exception as error:
        reason = " ".join(str(error).split())
        yield Problem(at, f"'{path}': creating it raised {type(error).__name__}: {reason}")
