"""`homeostat state`: inspects the state of any checkpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli import state_moves
from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, print_json, say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeostat.checkpoint.compare import Side
    from homeostat.checkpoint.metadata import Checkpoint
    from homeostat.checkpoint.state_reader import Rows

app = typer.Typer(
    name="state", help="Inspect, save, restore and rescale the state in a checkpoint.", no_args_is_help=True
)

CheckpointArgument = Annotated[
    str, typer.Argument(metavar="CKPT", help="Checkpoint directory of a query. The query may be running.")
]
TableOption = Annotated[
    str | None, typer.Option("--table", metavar="NAME", help="Table from `state ls`. Needed only if there are several.")
]
BatchOption = Annotated[
    int | None, typer.Option("--batch", metavar="N", min=0, help="Batch to read. Default: the latest committed batch.")
]
LimitOption = Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Maximum number of rows to print.")]
SchemaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        metavar="[[OPERATOR/]STORE:]DDL",
        help="Schema of the state, for a checkpoint that does not contain it (before Spark 3.1): "
        "'key STRUCT<word: STRING>, value STRUCT<count: BIGINT>'. Repeat the option for every state store.",
    ),
]
READING = "reading the state"
_PLACE = re.compile(r"(.+)@(\d+)")


@app.command("ls")
def ls(checkpoint: CheckpointArgument, batch: BatchOption = None, json: JsonFlag = False) -> None:
    """Show what a checkpoint contains: operators, tables, sizes, batches, and any damage.

    Exit code 3: the checkpoint is damaged.
    """
    from homeostat.checkpoint.files import LocalFiles, is_local
    from homeostat.checkpoint.metadata import Checkpoint, open_checkpoint
    from homeostat.checkpoint.rescale import half_done
    from homeostat.checkpoint.state_reader import describe, outline
    from homeostat.cli.state_session import spark_session, track
    from homeostat.cli.state_tables import print_description

    unfinished_moves = half_done(Checkpoint(checkpoint, LocalFiles())) if is_local(checkpoint) else []
    for line in unfinished_moves:
        say(line)
    description = outline(open_checkpoint(checkpoint), batch) if is_local(checkpoint) else None
    if description is None or description.readable:
        with spark_session() as spark:
            description = describe(spark, open_checkpoint(checkpoint, spark), batch, track)
    if json:
        is_committed = not description.batches.one_is_open
        print_json({**asdict(description), "last_batch_committed": is_committed, "cut_short": unfinished_moves})
    else:
        print_description(description)
    if description.damage:
        raise typer.Exit(EXIT_UNHEALTHY)


@app.command("show")
def show(
    checkpoint: CheckpointArgument,
    table: TableOption = None,
    batch: BatchOption = None,
    limit: LimitOption = 20,
    schema: SchemaOption = None,
    json: JsonFlag = False,
) -> None:
    """Print the rows of a state table after one committed batch."""
    from homeostat.checkpoint import state_reader
    from homeostat.cli.state_session import working

    with _open(checkpoint, batch, schema) as (spark, opened), working(spark, READING):
        rows = state_reader.show(spark, opened, table, batch, limit)
    _print_rows(rows, json)


@app.command("query")
def query(
    checkpoint: CheckpointArgument,
    sql: Annotated[str, typer.Argument(metavar="SQL", help='SQL query, such as "SELECT key.word FROM state".')],
    batch: BatchOption = None,
    limit: LimitOption = 1000,
    schema: SchemaOption = None,
    json: JsonFlag = False,
) -> None:
    """Query the state with SQL. Every table that `state ls` lists is a view of one committed batch."""
    from homeostat.checkpoint import state_reader
    from homeostat.cli.state_session import working

    with _open(checkpoint, batch, schema) as (spark, opened), working(spark, "running the query"):
        rows = state_reader.query(spark, opened, sql, batch, limit)
    _print_rows(rows, json)


@app.command("top")
def top(
    checkpoint: CheckpointArgument,
    table: TableOption = None,
    batch: BatchOption = None,
    limit: LimitOption = 10,
    json: JsonFlag = False,
) -> None:
    """Print the largest partitions and the keys with the most state."""
    from homeostat.checkpoint import largest_keys
    from homeostat.cli.state_session import working
    from homeostat.cli.state_tables import print_weights

    with _open(checkpoint, batch) as (spark, opened), working(spark, READING):
        weights = largest_keys.top(spark, opened, table, batch, limit)
    if json:
        print_json(asdict(weights))
    else:
        print_weights(weights)


@app.command("diff")
def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="First checkpoint, as CKPT or CKPT@BATCH.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Second checkpoint, as CKPT or CKPT@BATCH.")],
    table: TableOption = None,
    limit: LimitOption = 20,
    json: JsonFlag = False,
) -> None:
    """Print the keys that differ between two batches or two checkpoints."""
    from homeostat.checkpoint import compare
    from homeostat.cli.state_session import spark_session, working
    from homeostat.cli.state_tables import print_differences

    with spark_session() as spark, working(spark, "comparing"):
        differences = compare.diff(spark, _side(before, spark), _side(after, spark), table, limit)
    if json:
        print_json([{**asdict(each), "examples": each.examples.rows} for each in differences])
    else:
        print_differences(differences)


@app.command("changes")
def changes(
    checkpoint: CheckpointArgument,
    table: TableOption = None,
    first: Annotated[
        int | None, typer.Option("--from", metavar="N", min=0, help="First batch. Default: the same as --to.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--to", metavar="N", min=0, help="Last batch. Default: the latest committed batch.")
    ] = None,
    limit: LimitOption = 50,
    json: JsonFlag = False,
) -> None:
    """Print every write to the state in a range of batches (Spark's change feed)."""
    from homeostat.checkpoint import compare
    from homeostat.cli.state_session import working

    with _open(checkpoint, last) as (spark, opened), working(spark, READING):
        rows = compare.changes(spark, opened, table, first, last, limit)
    _print_rows(rows, json)


@app.command("export")
def export(
    checkpoint: CheckpointArgument,
    target: Annotated[str, typer.Argument(metavar="DIR", help="Directory to write to. It must be new or empty.")],
    table: TableOption = None,
    batch: BatchOption = None,
    json: JsonFlag = False,
) -> None:
    """Export the state to Parquet files, one directory per table."""
    from homeostat.checkpoint import export as exporting
    from homeostat.cli.output import print_table
    from homeostat.cli.state_session import track

    with _open(checkpoint, batch) as (spark, opened):
        result = exporting.export(spark, opened, target, table, batch, track)
    if json:
        print_json(asdict(result))
        return
    rows = [(view, f"{count:,}", f"{result.target}/{view}") for view, count in result.rows.items()]
    print_table(("table", "rows", "written to"), rows, right=("rows",))
    say(f"exported the state of batch {result.batch}")


@contextmanager
def _open(
    location: str, batch: int | None, schemas: Sequence[str] | None = None
) -> Iterator[tuple[SparkSession, Checkpoint]]:
    """The checkpoint and a Spark session. Errors that do not need Spark are raised before it starts."""
    from homeostat.checkpoint.completed import GivenSchema, completed
    from homeostat.checkpoint.damage import require_sound
    from homeostat.checkpoint.files import is_local
    from homeostat.checkpoint.metadata import open_checkpoint
    from homeostat.checkpoint.state_reader import committed_batch, require_readable
    from homeostat.cli.state_session import spark_session

    given_schemas = [GivenSchema.parse(text) for text in schemas or ()]
    if is_local(location):
        local = open_checkpoint(location)
        require_sound(local)
        if not given_schemas:
            require_readable(local)
        committed_batch(local, batch)
    with spark_session() as spark, completed(open_checkpoint(location, spark), spark, given_schemas) as opened:
        yield spark, opened


def _side(place: str, spark: SparkSession) -> Side:
    """Parse `CKPT` or `CKPT@BATCH`. An existing directory is never split at its @."""
    from homeostat.checkpoint.compare import Side
    from homeostat.checkpoint.metadata import open_checkpoint

    match = _PLACE.fullmatch(place)
    if match is None or Path(place).exists():
        return Side(open_checkpoint(place, spark))
    return Side(open_checkpoint(match[1], spark), int(match[2]))


def _print_rows(rows: Rows, json: bool) -> None:
    from homeostat.cli.state_tables import print_rows

    if json:
        print_json(asdict(rows))
    else:
        print_rows(rows)


state_moves.register(app)
