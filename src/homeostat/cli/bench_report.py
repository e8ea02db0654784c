"""`homeostat bench report`: the page of results, from kept results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homeostat.cli.output import JsonFlag, print_json, say
from homeostat.core.errors import ConfigError


def report(
    results: Annotated[
        Path, typer.Option("--results", metavar="DIR", help="Directory with the kept results of benches.")
    ] = Path("results"),
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Markdown file to write.")] = Path(
        "docs/results.md"
    ),
    json: JsonFlag = False,
) -> None:
    """Write a page of all kept results: figures, targets, and how to repeat each measurement."""
    from homeostat.lab.bench.result_page import page

    text = page(results, out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write the page: {error.strerror}", where=str(out)) from error
    if json:
        print_json({"file": str(out), "results": sorted(path.name for path in results.glob("*.json"))})
    else:
        say(f"Results: {out}")
