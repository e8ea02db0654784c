"""The page of results, from kept results only: every figure on it is in a file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from homeostat.core.errors import ConfigError
from homeostat.lab.bench import simulated_sections, spark_sections
from homeostat.lab.bench.kept_results import ResultFile, read_all
from homeostat.lab.bench.result_tables import Contest, Figures, Section, Table, number

Value = TypeVar("Value")

SECTIONS: Sequence[Section] = (*simulated_sections.SECTIONS, *spark_sections.SECTIONS)
BENCHES = tuple(section.bench for section in SECTIONS)
_BY_BENCH = {section.bench: section for section in SECTIONS}
_VERDICTS = {
    "wins": "What Homeostat wins",
    "loses": "What Homeostat loses",
    "unclear": "Too close to call: the 95 % intervals overlap",
    "equal": "Where both are equal",
    "unknown": "What could not be compared",
}
_HEAD = """\
# Results

The command [`homeostat bench report`](reference/commands.md#homeostat-bench-report) writes this page from the files in
`{directory}`. Do not edit it. Every figure is in one of these files, which a bench wrote with `--keep`.

Where a bench compares Homeostat with others, the comparison is listed below as won or lost. If both figures have a 95 %
interval and these overlap, neither wins. Other figures are compared as measured: with few runs, a small difference can
be chance. Names such as `ds2` mean our implementations of published rules ([policies](reference/policies.md)), not the
systems themselves.
"""
_FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")


def page(directory: Path, out: Path) -> str:
    """The page as Markdown. Links to the files are relative to `out`."""
    files = read_all(directory, BENCHES)
    link = Path(os.path.relpath(directory, out.parent)).as_posix()
    parts = [_HEAD.format(directory=f"{directory.name}/"), _overview(files)]
    parts += _comparisons(files)
    parts += [_bench_text(section, files, link) for section in SECTIONS if _of(section, files)]
    parts.append(_missing(files))
    return "\n".join(parts)


def _of(section: Section, files: Iterable[ResultFile]) -> list[ResultFile]:
    return [file for file in files if file.kept.bench == section.bench]


def _overview(files: Sequence[ResultFile]) -> str:
    rows = [
        (
            f"[{file.path.stem}](#{_anchor(_BY_BENCH[file.kept.bench])})",
            _BY_BENCH[file.kept.bench].title,
            _reached_text(file),
            str(file.kept.measured_on),
        )
        for file in files
    ]
    return "## Overview\n\n" + _markdown(Table(("result", "subject", "target reached", "date"), tuple(rows), 4))


def _reached_text(file: ResultFile) -> str:
    section = _BY_BENCH[file.kept.bench]
    if not section.target:
        return "no target"
    reached = _checked(file, section.reached)
    return "not measured" if reached is None else "yes" if reached else "**no**"


def _comparisons(files: Sequence[ResultFile]) -> Iterator[str]:
    """What Homeostat wins and what it loses against others, over all kept results."""
    contests: list[Contest] = []
    for file in files:
        contests += _checked(file, _listed(_BY_BENCH[file.kept.bench].contests))
    for verdict, title in _VERDICTS.items():
        rows = [
            (each.where, each.other, each.figure, number(each.ours), number(each.theirs))
            for each in contests
            if each.verdict == verdict
        ]
        if rows:
            table = Table(("where", "against", "figure", "Homeostat", "the other"), tuple(rows), 3)
            yield f"## {title}\n\n{_markdown(table)}"


def _bench_text(section: Section, files: Sequence[ResultFile], link: str) -> str:
    parts = [f"## {section.title}\n", f"{section.about}\n"]
    if section.target:
        parts.append(f"**Target:** {section.target}.\n")
    parts += [_result_text(section, file, link) for file in _of(section, files)]
    return "\n".join(parts)


def _result_text(section: Section, file: ResultFile, link: str) -> str:
    kept = file.kept
    parts = [f"### {file.path.stem}\n"]
    if section.target:
        parts.append(f"**Target reached:** {_reached_text(file)}\n")
    tables = [_markdown(table) for table in _checked(file, _listed(section.tables))]
    parts += tables
    if file.picture is not None:
        parts.append(f"![{section.title}]({link}/{file.picture.name})\n")
    if file.note:
        parts.append(_note_text(file, "\n".join(tables)))
    seeds = ", ".join(f"{name} {value}" for name, value in kept.seeds.items()) or "none"
    commit = "commit unknown" if kept.commit is None else str(kept.commit)
    parts.append(f"```\n{kept.command}\n```\n")
    parts.append(
        f"{kept.measured_on}, {number(kept.took_s)} s, version {kept.version}, {commit}. Seeds: {seeds}. "
        f"Machine: {kept.machine}. File: [{file.path.name}]({link}/{file.path.name}).\n"
    )
    return "\n".join(parts)


def _note_text(file: ResultFile, tables: str) -> str:
    """The note, if all its figures are in the tables or in the command."""
    known = {*_FIGURE.findall(tables), *_FIGURE.findall(file.kept.command)}
    for figure in _FIGURE.findall(re.sub(r"\b[A-Za-z]\w*\d\w*", "", file.note)):
        if figure not in known:
            raise ConfigError(
                f"the figure {figure} is not in the tables of this result",
                where=str(file.path.with_suffix(".md")),
                fix="write a figure as the tables do, or leave it out",
            )
    return f"{file.note}\n"


def _missing(files: Sequence[ResultFile]) -> str:
    kept = {file.kept.bench for file in files}
    missing = [section for section in SECTIONS if section.bench not in kept]
    if not missing:
        return "Every bench has a kept result.\n"
    none_on_spark = all(each in missing for each in SECTIONS if each.on_spark)
    on_spark = " None of the benches on Spark has one." if none_on_spark else ""
    lines = ["## Without a kept result\n", f"These benches have no kept result yet.{on_spark}\n"]
    rows = [
        (
            f"[`bench {each.bench}`](reference/commands.md#homeostat-bench-{each.bench})",
            each.title,
            number(each.on_spark),
        )
        for each in missing
    ]
    lines.append(_markdown(Table(("bench", "subject", "on Spark"), tuple(rows), 3)))
    return "\n".join(lines)


def _checked(file: ResultFile, read: Callable[[Figures], Value]) -> Value:
    """What `read` takes from the result. A result without the figures of its bench is refused."""
    try:
        return read(file.kept.result)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"this is not a result of the bench {file.kept.bench!r}: {type(error).__name__} {error}",
            where=str(file.path),
            fix="keep the result again with --keep, or remove the file",
        ) from error


def _listed(read: Callable[[Figures], Iterable[Value]]) -> Callable[[Figures], list[Value]]:
    return lambda figures: list(read(figures))


def _anchor(section: Section) -> str:
    return re.sub(r"[^\w\- ]", "", section.title.lower()).replace(" ", "-")


def _markdown(table: Table) -> str:
    """Columns of figures are right-aligned."""
    rule = ["---" if place < table.keys else "---:" for place in range(len(table.columns))]
    lines = [table.columns, rule, *table.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"
