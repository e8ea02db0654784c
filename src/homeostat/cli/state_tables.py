"""Prints the state of a checkpoint as text and tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from homeostat.cli.output import console, heading, print_table, say

if TYPE_CHECKING:
    from homeostat.checkpoint.compare import Difference
    from homeostat.checkpoint.largest_keys import Weights
    from homeostat.checkpoint.state_reader import Description, Rows

_UNITS = ("B", "kB", "MB", "GB", "TB")


def format_bytes(number: float) -> str:
    """
    >>> format_bytes(0), format_bytes(1234), format_bytes(5_000_000)
    ('0 B', '1.2 kB', '5.0 MB')
    """
    power = 0
    while number >= 1000 and power < len(_UNITS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.{1 if power else 0}f} {_UNITS[power]}"


def print_description(description: Description) -> None:
    from homeostat.checkpoint.state_reader import spans
    from homeostat.checkpoint.state_schema import UNKNOWN

    out = console()
    heading(description.location)
    facts = {
        "query": description.query_id,
        "batches kept": spans(description.kept) or "none",
        "last batch": _last_batch(description),
        "backend": f"{description.backend}, {description.codec}" if description.backend else None,
        "written by": f"Spark {description.written_by}" if description.written_by else None,
        "state on disk": format_bytes(description.state_bytes) if description.state_bytes else "none",
    }
    for label, value in facts.items():
        if value is not None:
            out.print(f"{label:<15}{value}", markup=False)
    for operator in description.operators:
        found_out = " (inferred from its state)" if operator.inferred and operator.name != UNKNOWN else ""
        text = f"{operator.name}{found_out}, {operator.partitions} partitions, {format_bytes(operator.bytes)} on disk"
        out.print(f"{f'operator {operator.id}':<15}{text}", markup=False)
    if description.note:
        out.print(f"{'tables':<15}not shown: {description.note}", markup=False)
    elif description.operators:
        out.print()
        _print_tables(description)
    if description.damage:
        out.print()
        columns = ("file", "damage", "consequence", "fix")
        print_table(
            columns, [(each.path, each.what, each.follows, each.fix) for each in description.damage], fold=columns
        )


def _last_batch(description: Description) -> str:
    if not description.batches.one_is_open:
        return f"{description.batches.finished} is committed" if description.batches.begun >= 0 else "none was started"
    line = f"{description.batches.begun} was started but not committed; a restart repeats it"
    if description.open_repartition is not None:
        line = (
            f"{description.batches.begun} is an interrupted repartitioning to {description.open_repartition} partitions"
        )
    return line


def _print_tables(description: Description) -> None:
    rows = [
        (
            table.view,
            str(operator.id),
            table.kind,
            f"{table.rows:,}",
            _spread(table.rows_by_partition),
            table.key,
            table.value,
        )
        for operator in description.operators
        for table in operator.tables
    ]
    columns = ("table", "operator", "kind", "rows", "per partition", "key", "value")
    print_table(columns, rows, right=("operator", "rows"), fold=("key", "value"))


def _spread(rows: Mapping[int, int]) -> str:
    counts = sorted(rows.values())
    return f"{counts[0]:,} to {counts[-1]:,}" if counts else "-"


def print_rows(rows: Rows) -> None:
    flat = [_flat(row, rows.columns) for row in rows.rows]
    columns = list(dict.fromkeys(name for row in flat for name in row)) or list(rows.columns)
    print_table(columns, [[row.get(name, "") for name in columns] for row in flat], fold=columns)
    more = "; more rows exist, raise --limit to see them" if rows.more else ""
    say(f"{_rows(len(rows.rows))} from the state of batch {rows.batch}{more}")


def _flat(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, str]:
    """A struct becomes one column per field, named as in SQL."""
    cells: dict[str, str] = {}
    for name in columns:
        value = row.get(name)
        if isinstance(value, dict):
            cells |= {f"{name}.{inner}": _cell(each) for inner, each in value.items()}
        else:
            cells[name] = _cell(value)
    return cells


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def print_weights(weights: Weights) -> None:
    heading(f"The largest partitions after batch {weights.batch}")
    partitions = [
        (str(p.operator), str(p.partition), f"{p.rows:,}", format_bytes(p.disk_bytes)) for p in weights.partitions
    ]
    columns = ("operator", "partition", "rows", "on disk")
    print_table(columns, partitions, right=columns)
    heading("\nThe keys with the most state")
    keys = [(k.view, k.key, f"{k.rows:,}", format_bytes(k.text_bytes), str(k.partition)) for k in weights.keys]
    print_table(
        ("table", "key", "rows", "as text", "partition"), keys, right=("rows", "as text", "partition"), fold=("key",)
    )


def print_differences(differences: Sequence[Difference]) -> None:
    for number, each in enumerate(differences):
        counts = ", ".join(f"{count:,} {change}" for change, count in each.counts.items())
        heading(f"{chr(10) if number else ''}{each.view}: {counts}")
        if each.examples.rows:
            columns = each.examples.columns
            rows = [
                [_cell(row[name]) if row[name] is not None else "-" for name in columns] for row in each.examples.rows
            ]
            print_table(columns, rows, fold=columns)
        if each.examples.more:
            say("more keys differ; raise --limit to see them")


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
