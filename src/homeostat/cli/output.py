"""Output of all commands: data goes to stdout as a table or as JSON, messages go to stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any
from unicodedata import category

import typer

from homeostat.strict.units import clock as clock

if TYPE_CHECKING:
    from rich.console import Console

# Control characters, format characters such as the writing direction, surrogates, and line separators.
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
WIDTH_OFF_TERMINAL = 200
EXIT_UNHEALTHY = 3
KIND_STYLES = {
    "symptom": "yellow",
    "diagnosis": "cyan",
    "proposal": "blue",
    "rejection": "dim",
    "advice": "blue",
    "action": "bold",
    "outcome": "green",
    "alert": "magenta",
    "failure": "red",
    "change": "bold blue",
}

JsonFlag = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def picture_option(subject: str) -> Any:
    """The option --picture of a command that can draw this."""
    return typer.Option("--picture", metavar="FILE", help=f"Draw {subject} to a .png or .svg file.")


def console() -> Console:
    """A console on stdout. If stdout is not a terminal, it prints no control codes and does not cut lines."""
    from rich.console import Console

    on_terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout, width=None if on_terminal else WIDTH_OFF_TERMINAL, highlight=False, soft_wrap=not on_terminal
    )


def visible(text: str) -> str:
    """The text with control characters replaced by codes, because a terminal would execute them."""
    if text.isprintable():
        return text
    return "".join(repr(each)[1:-1] if category(each) in _INVISIBLE and each not in "\t\n" else each for each in text)


def heading(text: str) -> None:
    console().print(visible(text), style="bold", markup=False)


def say(message: str) -> None:
    """Print a message to stderr, so that it never mixes with the data."""
    print(visible(message), file=sys.stderr)


def print_json(value: object) -> None:
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: object) -> Any:
    """The value as JSON can hold it: NaN and infinities become null, tuples become lists."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    fold: Sequence[str] = (),
    styles: Sequence[str] = (),
) -> None:
    """Print a table. Columns in `right` are right-aligned. Columns in `fold` may wrap on a narrow terminal (by
    default the last one).

    `styles`, if given, has one style per row. If stdout is not a terminal, each row is a single line.
    """
    if not sys.stdout.isatty():
        _print_plain_table(columns, rows, right)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        keep_whole = column not in (fold or columns[-1:])
        table.add_column(column, justify="right" if column in right else "left", overflow="fold", no_wrap=keep_whole)
    for number, row in enumerate(rows):
        table.add_row(*[Text(visible(cell)) for cell in row], style=styles[number] if styles else "")
    console().print(table)


def _print_plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    lines = [columns, *([visible(cell) for cell in row] for row in rows)]
    widths = [max(len(line[number]) for line in lines) for number in range(len(columns))]
    for line in lines:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        ]
        print("  ".join(cells).rstrip())
