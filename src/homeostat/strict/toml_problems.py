"""Errors of pydantic in words for users."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from homeostat.strict.toml_lines import KeyPath
from homeostat.strict.units import UnitError, format_value


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in a document, at the key or table that it concerns."""

    path: KeyPath
    what: str
    fix: str = ""


class ContradictionError(ValueError):
    """Raised by a model's own validators: what is wrong, and which key of the model it concerns."""

    def __init__(self, what: str, *key: str | int, fix: str = "") -> None:
        self.what, self.key, self.fix = what, key, fix
        super().__init__(what)


def nearest(word: str, names: Sequence[str]) -> str:
    """A hint with the most similar valid name, or with all of them."""
    lower_case = {name.lower(): name for name in names}
    close = difflib.get_close_matches(word.lower(), lower_case, n=1)
    if close:
        return f"did you mean '{lower_case[close[0]]}'?"
    return f"valid: {', '.join(names)}" if names else ""


def problems(model: type[BaseModel], error: ValidationError) -> Iterator[Problem]:
    for details in error.errors(include_url=False):
        yield _problem(model, details)


def _problem(model: type[BaseModel], details: ErrorDetails) -> Problem:
    place = _place(model, details["loc"])
    kind, path, context = details["type"], place.path, details.get("ctx", {})
    if kind == "missing":
        return _missing(path)
    if kind == "extra_forbidden":
        return _unknown_key(place)
    if kind == "union_tag_not_found":
        key = context["discriminator"].strip("'")
        return Problem(path, f"'{key}' is missing in {label(path)}", f"one of {', '.join(place.tags)}")
    if kind in ("union_tag_invalid", "literal_error"):
        return _not_one_of(place, details)
    if kind == "value_error":
        return _own_error(path, context["error"])
    return _wrong_value(path, details)


def _missing(path: KeyPath) -> Problem:
    table = path[:-1]
    inside = f" in {label(table)}" if table else ""
    return Problem(table, f"'{path[-1]}' is missing{inside}", "" if table else "add it at the top of the file")


def _unknown_key(place: _Place) -> Problem:
    key = str(place.path[-1])
    valid = _keys(place.table) if place.table else ()
    if any(key in _keys(other) for other in place.alternatives):
        what = f"'{key}' does not belong to {_tag_of(place.table)}"
        return Problem(place.path, what, f"valid: {', '.join(valid)}")
    return Problem(place.path, f"unknown key '{key}'", nearest(key, valid))


def _not_one_of(place: _Place, details: ErrorDetails) -> Problem:
    context, path, value = details["ctx"], place.path, details["input"]
    if details["type"] == "union_tag_invalid":
        path = (*path, context["discriminator"].strip("'"))
        value = context["tag"]
        choices = context["expected_tags"].strip("'").split("', '")
    else:
        choices = context["expected"].replace(" or ", ", ").strip("'").split("', '")
    fix = nearest(value, choices) if isinstance(value, str) else ""
    return Problem(path, f"{label(path)} must be one of {', '.join(choices)}, not {format_value(value)}", fix)


def _own_error(path: KeyPath, error: Exception) -> Problem:
    if isinstance(error, ContradictionError):
        return Problem((*path, *error.key), error.what, error.fix)
    if isinstance(error, UnitError):
        return Problem(path, f"{label(path)} {error}")
    return Problem(path, f"{label(path)}: {error}" if path else str(error))


_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text in quotes",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}


def _wrong_value(path: KeyPath, details: ErrorDetails) -> Problem:
    kind, value = details["type"], details["input"]
    if kind in _BOUNDS:
        key, relation = _BOUNDS[kind]
        return Problem(
            path, f"{label(path)} must be {relation} {format_value(details['ctx'][key])}, not {format_value(value)}"
        )
    if kind in ("too_short", "string_too_short"):
        return Problem(path, f"{label(path)} must not be empty")
    if kind not in _EXPECTED:
        message = details["msg"]
        return Problem(path, f"{label(path)}: {message[:1].lower()}{message[1:]}")
    fix = ""
    if kind == "list_type" and isinstance(value, dict):
        fix = f"start each one with [[{_dotted_name(path)}]]"
    elif _EXPECTED[kind] == "a table" and isinstance(value, list):
        fix = f"start it with [{_dotted_name(path)}], once"
    return Problem(path, f"{label(path)} must be {_EXPECTED[kind]}, not {format_value(value)}", fix)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an error is: its keys in the file, the model around the last one, and that model's alternatives.

    `tags` are those of the tables that are allowed there.
    """

    path: KeyPath
    table: type[BaseModel] | None
    alternatives: tuple[type[BaseModel], ...] = ()
    tags: tuple[str, ...] = ()


def _place(model: type[BaseModel], location: tuple[str | int, ...]) -> _Place:
    """pydantic's location without the tags of unions, which are not keys of the file."""
    path: KeyPath = ()
    here: Any = model
    table: type[BaseModel] | None = None
    siblings: tuple[type[BaseModel], ...] = ()
    inner_tables: tuple[type[BaseModel], ...] = ()
    for part in location:
        here = _bare(here)
        if _is_table(here):
            table, siblings, inner_tables = here, inner_tables, ()
            path = (*path, part)
            here = _type_of_key(here, str(part))
        elif get_origin(here) in (Union, types.UnionType):
            inner_tables = _tables_among(here)
            here = next((member for member in inner_tables if part in _tags(member)), None)
        elif part != "[key]":
            path = (*path, part)
            here = (get_args(here) or (None,))[-1]
    others = tuple(member for member in siblings if member is not table)
    return _Place(path, table, others, tuple(tag for member in _tables_among(_bare(here)) for tag in _tags(member)))


def _tables_among(annotation: Any) -> tuple[type[BaseModel], ...]:
    return tuple(_bare(member) for member in get_args(annotation) if _is_table(_bare(member)))


def _bare(annotation: Any) -> Any:
    """The type without Annotated and `| None`, which add nothing to a location."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return _bare(members[0])
    return annotation


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _keys(table: type[BaseModel]) -> tuple[str, ...]:
    return tuple(info.alias or name for name, info in table.model_fields.items())


def _type_of_key(table: type[BaseModel], key: str) -> Any:
    fields = table.model_fields.items()
    return next((info.annotation for name, info in fields if key in (info.alias, name)), None)


def _tags(table: type[BaseModel]) -> dict[str, str]:
    """Value → key, for every key of a table that allows only certain values."""
    return {
        value: info.alias or name
        for name, info in table.model_fields.items()
        if get_origin(info.annotation) is Literal
        for value in get_args(info.annotation)
    }


def _tag_of(table: type[BaseModel] | None) -> str:
    tags = _tags(table) if table else {}
    return next((f"{key} = '{value}'" for value, key in tags.items()), "this table")


def label(path: KeyPath) -> str:
    """The last key as a message names it: 'rate', 'inputs[1]'."""
    indices = ""
    for part in reversed(path):
        if isinstance(part, str):
            return f"'{part}{indices}'"
        indices = f"[{part}]{indices}"
    return "the file"


def _dotted_name(path: KeyPath) -> str:
    return ".".join(str(part) for part in path if isinstance(part, str))
