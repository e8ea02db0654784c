"""Parameters of a query string, checked by the same schema that the OpenAPI description shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeostat.web.responses import RefusalError


@dataclass(frozen=True, slots=True)
class Parameter:
    """`schema` is JSON schema: string (maxLength, enum), integer or number (minimum, maximum)."""

    name: str
    schema: Mapping[str, Any]
    meaning: str
    required: bool = False

    def read(self, text: str | None) -> Any:
        if text is None:
            if self.required:
                raise RefusalError(400, f"the parameter {self.name!r} is missing", self.meaning)
            return self.schema.get("default")
        if self.schema["type"] == "integer":
            return self._whole(text)
        if self.schema["type"] == "number":
            return self._number(text)
        if len(text) < self.schema.get("minLength", 0) or len(text) > self.schema["maxLength"]:
            raise RefusalError(
                400, f"{self.name!r} has {len(text)} characters", f"use at most {self.schema['maxLength']}"
            )
        if "enum" in self.schema and text not in self.schema["enum"]:
            raise RefusalError(
                400, f"{self.name!r} has an unknown value", f"use one of {', '.join(filter(None, self.schema['enum']))}"
            )
        return text

    def _whole(self, text: str) -> int:
        low, high = self.schema["minimum"], self.schema["maximum"]
        if not (text.isascii() and text.isdigit() and len(text) < 12 and low <= int(text) <= high):
            raise RefusalError(400, f"{self.name!r} must be a whole number from {low} to {high}")
        return int(text)

    def _number(self, text: str) -> float:
        low, high = self.schema["minimum"], self.schema["maximum"]
        plain = len(text) < 40 and not set(text) - set("0123456789+-.eE")
        try:
            value = float(text) if plain else math.nan
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise RefusalError(400, f"{self.name!r} must be a number from {low:g} to {high:g}")
        return value


def text(name: str, meaning: str, longest: int = 500, *, required: bool = False, least: int = 0) -> Parameter:
    schema: dict[str, Any] = {"type": "string", "minLength": least, "maxLength": longest}
    return Parameter(name, schema if required else schema | {"default": ""}, meaning, required)


def whole(name: str, meaning: str, low: int, high: int, default: int | None = None) -> Parameter:
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Parameter(name, schema if default is None else schema | {"default": default}, meaning)


def number(name: str, meaning: str, low: float, high: float) -> Parameter:
    return Parameter(name, {"type": "number", "minimum": low, "maximum": high}, meaning)


def choice(name: str, meaning: str, options: Sequence[str], default: str) -> Parameter:
    longest = max(map(len, options))
    return Parameter(name, {"type": "string", "enum": list(options), "default": default, "maxLength": longest}, meaning)


def read(parameters: Sequence[Parameter], query: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The value of every parameter. Raises RefusalError for one that is unknown or occurs twice."""
    values: dict[str, str] = {}
    names = [parameter.name for parameter in parameters]
    for name, value in query:
        if name not in names:
            raise RefusalError(
                400, f"unknown parameter {name[:50]!r}", f"use one of {', '.join(names)}" if names else ""
            )
        if name in values:
            raise RefusalError(400, f"the parameter {name!r} occurs twice")
        values[name] = value
    return {parameter.name: parameter.read(values.get(parameter.name)) for parameter in parameters}
