"""`homeostat state …`: saves, restores and repartitions a state, and tests an application on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homeostat.cli.output import EXIT_UNHEALTHY, JsonFlag, print_json, print_table, say
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from homeostat.checkpoint.metadata import Checkpoint
    from homeostat.checkpoint.partition_preview import Preview
    from homeostat.checkpoint.savepoints import Savepoint
    from homeostat.spark.pipeline import Pipeline

LIMIT_S = 300.0

CheckpointArgument = Annotated[str, typer.Argument(metavar="CKPT", help="Checkpoint directory of a query.")]
ApplicationOption = Annotated[
    str | None, typer.Option("--app", metavar="APP.PY[:NAME]", help="Application that finishes an open batch.")
]


def register(app: typer.Typer) -> None:
    for command in (savepoint, savepoints, restore, rescale, check):
        app.command(command.__name__)(command)


def savepoint(
    checkpoint: CheckpointArgument,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Name of the savepoint. Default: batch-N.")] = "",
    json: JsonFlag = False,
) -> None:
    """Save the last committed batch of a checkpoint. The query may keep running.

    Files are hard-linked where possible, so a savepoint takes little space.
    """
    from homeostat.checkpoint import savepoints as saving
    from homeostat.cli.state_session import track

    with _checkpoint(checkpoint) as opened:
        savepoint = saving.make(opened, name, track=track)
        if json:
            print_json(_savepoint_json(savepoint))
        else:
            place = saving.place(opened, savepoint.name)
            print(f"{savepoint.name}  batch {savepoint.batch}, {_size(savepoint)}, in {place}")


def savepoints(checkpoint: CheckpointArgument, json: JsonFlag = False) -> None:
    """List the savepoints of a checkpoint, oldest first."""
    from homeostat.checkpoint import savepoints as saving

    damages: list[str] = []
    with _checkpoint(checkpoint) as opened:
        savepoints = saving.list_savepoints(opened, lambda error: damages.append(error.line))
    for line in damages:
        say(line)
    if json:
        print_json([_savepoint_json(each) for each in savepoints])
        return
    rows = [
        (each.name, str(each.batch), str(each.partitions or "-"), f"{time.ctime(each.made_s)}", _size(each))
        for each in savepoints
    ]
    print_table(("savepoint", "batch", "partitions", "made", "size"), rows, right=("batch", "partitions"))


def restore(
    checkpoint: CheckpointArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Savepoint from `state savepoints`.")],
    force: Annotated[
        bool, typer.Option("--force", help="Restore even if a sink may have received later batches.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Restore a savepoint after checking all of its files. Stop the query first."""
    from homeostat.checkpoint import rescale as rescaling
    from homeostat.checkpoint import restore
    from homeostat.checkpoint import savepoints as saving
    from homeostat.checkpoint.lock import hold_lock
    from homeostat.cli.state_session import track

    with _checkpoint(checkpoint, may_be_missing=True) as opened, hold_lock(opened.location):
        previous = restore.restore(opened, name, force=force, track=track)
        rescaling.abandon(opened)
        batch = saving.read(opened, name).batch
    if json:
        print_json({"savepoint": name, "batch": batch, "kept_as": previous or None})
    else:
        print(
            f"restored the checkpoint to batch {batch}"
            + (f"; the previous state is saved as {previous}" if previous else "")
        )


def rescale(
    checkpoint: CheckpointArgument,
    partitions: Annotated[
        int | None, typer.Option("--partitions", metavar="N", min=1, help="New number of state partitions.")
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only print the size of each partition, and the best number.")
    ] = False,
    between: Annotated[
        str,
        typer.Option(
            "--between", metavar="A,B", help="Range for the best number. Default: half to twice the current number."
        ),
    ] = "",
    slots: Annotated[
        int | None,
        typer.Option(
            "--slots", metavar="N", min=1, help="Number of tasks that can run at once. It affects the best number."
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Compare the state before and after the change.")
    ] = True,
    app: ApplicationOption = None,
    sink: Annotated[
        str, typer.Option("--sink", metavar="DIR", help="Output directory of the query's file sink, if it has one.")
    ] = "",
    json: JsonFlag = False,
) -> None:
    """Change the number of state partitions. Stop the query first. After a crash, run the command again."""
    if preview:
        _preview(checkpoint, partitions, between, slots, json)
    elif partitions is None:
        raise ConfigError(
            "the number of partitions is missing", where="--partitions", fix="--preview finds the best number"
        )
    else:
        _rescale(checkpoint, partitions, verify, app, sink, json)


def check(
    checkpoint: CheckpointArgument,
    app: Annotated[
        str, typer.Argument(metavar="APP.PY[:NAME]", help="Application file, and the query if it has several.")
    ],
    limit: Annotated[str, typer.Option("--limit", metavar="TIME", help="Time limit for a batch.")] = "5 min",
    json: JsonFlag = False,
) -> None:
    """Check that this version of the application can continue from this checkpoint.

    The check uses a hard-linked copy of the checkpoint and does not write to the sink. Exit code 3: it cannot continue.
    """
    from homeostat.checkpoint.damage import require_sound
    from homeostat.cli.state_session import working
    from homeostat.spark.act.restart_check import try_start
    from homeostat.strict import units

    try:
        limit_s = units.parse_duration(limit)
    except ValueError as error:
        raise ConfigError(str(error), where="--limit") from error
    with _checkpoint(checkpoint) as opened:
        require_sound(opened)
        pipeline = _pipeline(app)
        with _session() as spark, working(spark, "starting the query"):
            verdict = try_start(spark, opened, pipeline, limit_s)
    if json:
        print_json(asdict(verdict))
    else:
        print(f"{'the query starts' if verdict.starts else 'the query does not start'}: {verdict.reason}")
    if not verdict.starts:
        raise typer.Exit(EXIT_UNHEALTHY)


def _rescale(location: str, partitions: int, verify: bool, app: str | None, sink: str, json: bool) -> None:
    from homeostat.checkpoint import rescale as rescaling
    from homeostat.checkpoint import restore
    from homeostat.checkpoint.lock import hold_lock
    from homeostat.checkpoint.metadata import require_there
    from homeostat.cli.state_session import working
    from homeostat.spark.act.restart_check import open_batch_finished

    pipeline = _pipeline(app) if app else None
    with _checkpoint(location, may_be_missing=True) as opened, hold_lock(opened.location):
        restore.finish(opened)
        require_there(opened)
        if rescaling.has_open_batch(opened) and pipeline is None:
            raise ConfigError(
                f"batch {opened.batches().begun} is not finished, and only the application can finish it",
                where=location,
                fix="give the application with --app; the batch is then written to its sink",
            )
        with _session() as spark, working(spark, "rescaling"):
            if rescaling.has_open_batch(opened) and pipeline is not None:
                say(f"finishing batch {opened.batches().begun} first")
                open_batch_finished(spark, opened, pipeline, LIMIT_S)
            result = rescaling.rescale(spark, opened, partitions, verify=verify, sink=sink, tell=say)
    if json:
        print_json(asdict(result))
        return
    print(f"repartitioned from {result.before} to {result.partitions}; the old state is saved as {result.savepoint}")
    for phase, seconds in result.phases_s.items():
        print(f"{phase:<12} {seconds:6.1f} s")


def _preview(location: str, partitions: int | None, between: str, slots: int | None, json: bool) -> None:
    from homeostat.checkpoint import partition_preview as previewing
    from homeostat.checkpoint import raw_rows
    from homeostat.checkpoint import rescale as rescaling
    from homeostat.checkpoint.state_reader import at_one_batch
    from homeostat.cli.state_session import working

    with _checkpoint(location) as opened, _session() as spark:
        if reason := rescaling.refusal(opened, str(spark.version)):
            raise ConfigError(reason, where=location)
        with working(spark, "reading the keys"):
            batch, keys = at_one_batch(opened, None, lambda number: raw_rows.keys(spark, opened, number))
        now = opened.state_partitions(batch) or 1
    chosen = previewing.preview(keys, partitions or now, slots)
    best = previewing.best(keys, _candidates(between, now), slots)
    if json:
        print_json({"batch": batch, "partitions": now, "preview": _spread(chosen), "best": _spread(best)})
        return
    rows = [
        (str(spread.operator), str(number), f"{count:,}", f"{size:,}")
        for spread in chosen.operators
        for number, (count, size) in enumerate(zip(spread.rows, spread.bytes, strict=True))
    ]
    columns = ("operator", "partition", "rows", "bytes")
    print_table(columns, rows, right=columns)
    print(f"{chosen.partitions} partitions: the average partition is {chosen.balance:.0%} of the largest")
    print(f"best: {best.partitions} partitions ({best.balance:.0%})")


def _candidates(between: str, now: int) -> range:
    if not between:
        return range(max(1, now // 2), 2 * now + 1)
    try:
        first, last = (int(part) for part in between.split(","))
    except ValueError:
        first = last = 0
    if not 1 <= first <= last:
        raise ConfigError(f"{between!r} is not a range", where="--between", fix="write two numbers, such as 4,16")
    return range(first, last + 1)


def _spread(preview: Preview) -> dict[str, Any]:
    return {**asdict(preview), "balance": preview.balance}


def _savepoint_json(savepoint: Savepoint) -> dict[str, Any]:
    fields = {key: value for key, value in asdict(savepoint).items() if key != "files"}
    return {**fields, "files": len(savepoint.files), "bytes": savepoint.bytes, "copied_bytes": savepoint.copied_bytes}


def _size(savepoint: Savepoint) -> str:
    from homeostat.cli.state_tables import format_bytes

    copy_text = f", {format_bytes(savepoint.copied_bytes)} copied" if savepoint.copied_bytes else ", all links"
    return f"{len(savepoint.files)} files, {format_bytes(savepoint.bytes)}{copy_text}"


def _pipeline(app: str) -> Pipeline:
    from homeostat.runtime import pipeline_files

    pipelines = pipeline_files.load(app)
    if len(pipelines) > 1:
        names = ", ".join(pipeline.name for pipeline in pipelines)
        raise ConfigError("the file has several queries", where=app, fix=f"write {app}:NAME with one of {names}")
    pipeline_files.send_along(app)
    return pipelines[0]


@contextmanager
def _session() -> Iterator[SparkSession]:
    from homeostat.cli.state_session import spark_session

    with spark_session() as spark:
        yield spark


@contextmanager
def _checkpoint(location: str, *, may_be_missing: bool = False) -> Iterator[Checkpoint]:
    """Open a checkpoint, without Spark if it is local. It may be missing if it has savepoints to restore."""
    from homeostat.checkpoint import savepoints as saving
    from homeostat.checkpoint.files import LocalFiles, is_local
    from homeostat.checkpoint.metadata import Checkpoint, open_checkpoint

    if not is_local(location):
        with _session() as spark:
            yield open_checkpoint(location, spark)
        return
    local = Checkpoint(location, LocalFiles())
    yield local if may_be_missing and saving.has_any(local) else open_checkpoint(location)
