"""Strict reading of TOML. Unknown keys, wrong values and contradictions are errors with their line and a fix."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from homeostat.core.errors import ConfigError
from homeostat.strict import toml_problems, units
from homeostat.strict.toml_lines import KeyPath, key_lines
from homeostat.strict.toml_problems import ContradictionError, Problem, nearest

__all__ = [
    "ContradictionError",
    "Count",
    "Document",
    "Duration",
    "PositiveCount",
    "PositiveDuration",
    "PositiveError",
    "PositiveRate",
    "PositiveSize",
    "Problem",
    "Rate",
    "Share",
    "Table",
    "load",
    "loads",
    "nearest",
    "read_text",
]

PROBLEMS_SHOWN = 10

Duration = Annotated[float, BeforeValidator(units.parse_duration)]
Rate = Annotated[float, BeforeValidator(units.parse_rate)]
Share = Annotated[float, BeforeValidator(units.parse_share)]
Count = Annotated[int, BeforeValidator(units.parse_count)]
PositiveDuration = Annotated[float, Field(gt=0), BeforeValidator(units.parse_duration)]
PositiveRate = Annotated[float, Field(gt=0), BeforeValidator(units.parse_rate)]
PositiveError = Annotated[float, Field(gt=0), BeforeValidator(units.parse_error)]
PositiveSize = Annotated[int, Field(gt=0), BeforeValidator(units.parse_size)]
PositiveCount = Annotated[int, Field(gt=0), BeforeValidator(units.parse_count)]


class Table(BaseModel):
    """A TOML table with exactly the declared keys and types. It is immutable."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Document:
    """Parsed TOML with the line of each key."""

    name: str
    data: Mapping[str, Any]
    lines: Mapping[KeyPath, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, name: str) -> Document:
        try:
            data = tomllib.loads(text)
            return cls(name, data, key_lines(text))
        except tomllib.TOMLDecodeError as error:
            raise _syntax_error(text, name, str(error)) from None
        except RecursionError:
            raise ConfigError("is nested too deeply", where=name) from None
        except ValueError as error:
            raise ConfigError(f"is not valid TOML: {error}", where=name) from None

    @classmethod
    def open(cls, path: str | Path) -> Document:
        return cls.parse(read_text(path), str(path))

    def read(self, model: type[Model], at: KeyPath = ()) -> Model:
        """The table at `at` (empty if there is none) as a model."""
        table: Any = self.data
        for key in at:
            table = table.get(key, {})
        try:
            return model.model_validate(dict(table) if isinstance(table, Mapping) else table)
        except ValidationError as error:
            problems = toml_problems.problems(model, error)
        raise self.error_of(Problem((*at, *problem.path), problem.what, problem.fix) for problem in problems)

    def error_of(self, problems: Iterable[Problem]) -> ConfigError:
        """One error for all problems, a line each, in the order of the file."""
        by_line = sorted(problems, key=lambda problem: self._line(problem.path))
        first, *others = by_line
        where = self.where(first.path)
        if not others:
            return ConfigError(first.what, where=where, fix=first.fix)
        lines = [ConfigError(p.what, where=self.where(p.path), fix=p.fix).line for p in by_line[:PROBLEMS_SHOWN]]
        if len(by_line) > PROBLEMS_SHOWN:
            lines.append(f"{self.name}: and {len(by_line) - PROBLEMS_SHOWN} more")
        return ConfigError("\n".join(lines).removeprefix(f"{where}: "), where=where)

    def where(self, path: KeyPath = ()) -> str:
        """`file:line` of the key, or of the innermost table around it that the file has."""
        if not self.lines:
            name = ".".join(str(part) for part in path)
            return f"{self.name}: {name}" if name else self.name
        return f"{self.name}:{self._line(path)}"

    def _line(self, path: KeyPath) -> int:
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def load(model: type[Model], path: str | Path) -> Model:
    """Read a TOML file into a model, or refuse it with one ConfigError."""
    return Document.open(path).read(model)


def loads(model: type[Model], text: str, name: str = "text") -> Model:
    """Read TOML text into a model. Messages use `name` as the file name."""
    return Document.parse(text, name).read(model)


def read_text(path: str | Path) -> str:
    """The text of a file, or a ConfigError that says why it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        reason = "no such file"
    except IsADirectoryError:
        reason = "is a directory, not a file"
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 text (byte {error.start})"
    except OSError as error:
        reason = f"cannot be read: {(error.strerror or str(error)).lower()}"
    except ValueError:
        reason = "is not the name of a file"
    raise ConfigError(reason, where=str(path) or "''")


_POSITION = re.compile(r"(?P<reason>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)", re.S)
_UNQUOTED_QUANTITY = re.compile(r"=\s*[+-]?\d[\d._]*\s*[A-Za-z%/]")
_UNQUOTED_TEXT = re.compile(r"=\s*[A-Za-z]")


def _syntax_error(text: str, name: str, message: str) -> ConfigError:
    """tomllib's message with its position in front and, for the two most common mistakes, a fix."""
    match = _POSITION.fullmatch(message)
    reason = match["reason"] if match else message
    rows = text.split("\n")
    line, column = len(rows), len(rows[-1]) + 1
    if match and match["line"]:
        line, column = int(match["line"]), int(match["column"])
    row = rows[min(line, len(rows)) - 1]
    fix = ""
    if "overwrite a value" in reason:
        reason = "the same key is set twice"
    elif _UNQUOTED_QUANTITY.search(row):
        fix = 'put a value with a unit in quotes, such as "180 s"'
    elif _UNQUOTED_TEXT.search(row):
        fix = "put text in double quotes"
    return ConfigError(f"is not valid TOML: {reason[:1].lower()}{reason[1:]}", where=f"{name}:{line}:{column}", fix=fix)
