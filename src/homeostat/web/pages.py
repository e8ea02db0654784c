"""Pages from templates. Whatever comes from the log is text: the templates escape all of it."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from homeostat._version import __version__
from homeostat.core.wording import moment, number, words
from homeostat.web import drawing
from homeostat.web.stories import clipped

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
_FAR_OFF = 5.0


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "moment": moment,
        "number": _number,
        "seconds": _seconds,
        "off": _off,
        "words": words,
        "clipped": clipped,
    }
    made.globals |= {
        "version": __version__,
        "link": link,
        "sparkline": drawing.sparkline,
        "topology": drawing.topology,
        "heat": drawing.heat,
        "plotted": drawing.curve,
    }
    return made


def page(template: str, **values: Any) -> bytes:
    return _environment().get_template(template).render(**values).encode("utf-8", "backslashreplace")


def warm() -> None:
    """Read every template now, not while the first viewer waits."""
    for name in _environment().list_templates():
        _environment().get_template(name)


def link(path: str, **asked: object) -> str:
    """An address within the dashboard; any run name is safe in it."""
    given = {name: value for name, value in asked.items() if value not in ("", None)}
    return f"{path}?{urlencode(given, errors='backslashreplace')}" if given else path


def _off(error: float) -> str:
    """An error in ln of what was predicted."""
    return f"{math.expm1(min(error, _FAR_OFF)):.0%}"


def _seconds(value: float) -> str:
    return f"{number(value)} s" if math.isfinite(value) else "unbounded"


def _number(value: object) -> str:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else "unknown"
