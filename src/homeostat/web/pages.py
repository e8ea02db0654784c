"""Renders pages from templates. Everything that comes from the log is text: the templates escape it."""

from __future__ import annotations

import math
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from homeostat._version import __version__
from homeostat.core.wording import moment, number, words
from homeostat.web import drawing
from homeostat.web.page_contexts import PageFrame
from homeostat.web.texts import as_sentence, clip

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
_FAR_OFF = 5.0


@cache
def environment() -> Environment:
    """Templates with their filters and functions."""
    jinja = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    jinja.filters |= {
        "moment": moment,
        "number": _number,
        "seconds": _seconds,
        "off": _off,
        "words": words,
        "sentence": as_sentence,
        "clipped": clip,
    }
    jinja.globals |= {
        "version": __version__,
        "link": link,
        "sparkline": drawing.sparkline,
        "topology": drawing.topology,
        "heat": drawing.heat,
        "plotted": drawing.curve,
    }
    return jinja


def page(template: str, context: Any, frame: PageFrame | None = None) -> bytes:
    """`context` is an instance of the template's class in `page_contexts.TEMPLATES`."""
    names = {**_fields(frame or PageFrame()), **_fields(context)}
    return environment().get_template(template).render(names).encode("utf-8", "backslashreplace")


def _fields(context: Any) -> dict[str, Any]:
    return {each.name: getattr(context, each.name) for each in fields(context)}


def warm() -> None:
    """Compiles every template now, so that the first viewer does not wait for it."""
    for name in environment().list_templates():
        environment().get_template(name)


def link(path: str, **query: object) -> str:
    """An address within the dashboard. Any run name is safe in it."""
    parameters = {name: value for name, value in query.items() if value not in ("", None)}
    return f"{path}?{urlencode(parameters, errors='backslashreplace')}" if parameters else path


def _off(error: float) -> str:
    """A prediction error in ln of the time, as a percentage."""
    return f"{math.expm1(min(error, _FAR_OFF)):.0%}"


def _seconds(value: float) -> str:
    return f"{number(value)} s" if math.isfinite(value) else "unbounded"


def _number(value: object) -> str:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else "unknown"
