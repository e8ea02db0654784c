"""Typed contents of a record as JSON and back.

Reading never fails, because anyone who can write the log file can write anything into it. A value that is missing or of
the wrong type becomes the field's default, and keys that the class does not declare are kept in `extra`. NaN, which is
an unknown number, is null in JSON, wherever it is; an infinite number stays infinite.
"""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]
VERSION_KEY = "v"
EXTRA = "extra"
# Python floats end near 1.8e308; a longer integer in a log is damage, not a measurement.
LARGEST_NUMBER = 1e300
# What is nested more deeply in a log is damage as well, and is left as it is.
DEEPEST = 50

_Content = TypeVar("_Content")


def json_field(key: str, default: Any = dataclasses.MISSING) -> Any:
    """A field whose key in JSON is not a Python name."""
    return dataclasses.field(default=default, metadata={"key": key})


def to_json(content: object, version: int) -> dict[str, JSON]:
    """Required fields always, others where they differ from their default. An unknown number is null."""
    body: dict[str, JSON] = {VERSION_KEY: version}
    for spec in _specs(type(content)):
        value = _plain(getattr(content, spec.name))
        if spec.required or value != spec.default_json:
            body[spec.key] = value
    extra = getattr(content, EXTRA, {})
    return {**body, **{key: value for key, value in extra.items() if key not in body}}


def from_json(cls: type[_Content], body: Mapping[str, JSON]) -> _Content:
    specs = _specs(cls)
    values: dict[str, Any] = {
        spec.name: spec.read(body[spec.key]) if spec.key in body else spec.default for spec in specs
    }
    known_keys = {spec.key for spec in specs} | {VERSION_KEY}
    extra = {key: value for key, value in body.items() if key not in known_keys}
    if extra and any(field.name == EXTRA for field in dataclasses.fields(cls)):  # type: ignore[arg-type]
        values[EXTRA] = extra
    return cls(**values)


@dataclasses.dataclass(frozen=True, slots=True)
class _FieldSpec:
    name: str
    key: str
    required: bool
    default: Any
    default_json: JSON
    read: Callable[[JSON], Any]


_SPECS: dict[type, tuple[_FieldSpec, ...]] = {}


def _specs(cls: type) -> tuple[_FieldSpec, ...]:
    if cls not in _SPECS:
        _SPECS[cls] = _read_specs(cls)
    return _SPECS[cls]


def _read_specs(cls: type) -> tuple[_FieldSpec, ...]:
    hints = get_type_hints(cls)
    specs = []
    # In the order of the constructor's parameters: those by keyword last.
    for field in sorted(dataclasses.fields(cls), key=lambda field: bool(field.kw_only)):
        if field.name == EXTRA:
            continue
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = _empty(hints[field.name]) if required else _default(field)
        read = _reader(hints[field.name], default)
        key = field.metadata.get("key", field.name)
        specs.append(_FieldSpec(field.name, key, required, default, _plain(default), read))
    return tuple(specs)


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default


def _empty(hint: Any) -> Any:
    """The value of a required field that is missing in the log."""
    if hint is float:
        return math.nan
    origin = get_origin(hint)
    if origin is tuple:
        return ()
    if origin is not None and issubclass(origin, Mapping):
        return {}
    return hint()


def _plain(value: Any) -> JSON:
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {spec.key: _plain(getattr(value, spec.name)) for spec in _specs(type(value))}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value  # type: ignore[no-any-return]


def _reader(hint: Any, default: Any) -> Callable[[JSON], Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        read_inner = _reader(inner, default)
        return lambda value: default if value is None else read_inner(value)
    if origin is tuple:
        item = _item_reader(arguments[0])
        return lambda value: (
            tuple(item_value for each in value if (item_value := item(each)) is not None)
            if isinstance(value, list)
            else default
        )
    if origin is not None and issubclass(origin, Mapping):
        item = _SCALARS.get(arguments[1], _anything)
        return lambda value: (
            {key: item_value for key, each in value.items() if (item_value := item(each)) is not None}
            if isinstance(value, dict)
            else default
        )
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return lambda value: from_json(hint, value) if isinstance(value, dict) else default
    scalar = _SCALARS[hint]
    return lambda value: default if (scalar_value := scalar(value)) is None else scalar_value


def _item_reader(hint: Any) -> Callable[[JSON], Any]:
    """Reads one of several values; None for a value of the wrong type."""
    if dataclasses.is_dataclass(hint):
        return lambda value: from_json(hint, value) if isinstance(value, dict) else None  # type: ignore[arg-type]
    return _SCALARS[hint]


def _anything(value: JSON, levels: int = DEEPEST) -> JSON:
    if levels and isinstance(value, list):
        return [_anything(item, levels - 1) for item in value]
    if levels and isinstance(value, dict):
        return {key: _anything(item, levels - 1) for key, item in value.items()}
    return math.nan if value is None else value


def _text(value: JSON) -> str | None:
    return value if isinstance(value, str) else None


def _flag(value: JSON) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: JSON) -> float | None:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if isinstance(value, float) or abs(value) < LARGEST_NUMBER else math.nan


def _count(value: JSON) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < LARGEST_NUMBER:
        return None
    return int(value)


def _setting(value: JSON) -> int | float | None:
    """The value of a knob: whole numbers stay whole."""
    if value is None:
        return math.nan
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


_SCALARS: dict[Any, Callable[[JSON], Any]] = {
    str: _text,
    bool: _flag,
    float: _number,
    int: _count,
    int | float: _setting,
}
