"""Restores a savepoint: builds it beside the checkpoint, swaps the two by renames, and finishes after a crash."""

from __future__ import annotations

import json
import time
from contextlib import suppress

from homeostat.checkpoint import file_sink_log, savepoints
from homeostat.checkpoint.damage import DamagedError
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.savepoints import Savepoint, SavepointError
from homeostat.checkpoint.state_reader import Track, no_tracking


def restore(
    checkpoint: Checkpoint, name: str, *, force: bool = False, keep: bool = True, track: Track = no_tracking
) -> str:
    """Restore a savepoint. The query must not run.

    The present checkpoint is kept as another savepoint, whose name is returned. If it is damaged, it is kept in a
    directory of its own instead.
    """
    require_renaming(checkpoint)
    finish(checkpoint)
    savepoint = savepoints.read(checkpoint, name)
    savepoints.verify(checkpoint, savepoint, track)
    if not force and (batches_lost := received_since(checkpoint, savepoint)):
        raise SavepointError(
            f"{batches_lost}; restoring would process their rows again in batches with other numbers",
            where=checkpoint.location,
            fix="use --force if the sink accepts duplicate rows or is reset as well",
        )
    kept_as = _keep(checkpoint) if keep else ""
    _build(checkpoint, savepoint)
    checkpoint.files.write(_journal(checkpoint), json.dumps({"savepoint": name, "batch": savepoint.batch}).encode())
    finish(checkpoint)
    return kept_as


def require_renaming(checkpoint: Checkpoint) -> None:
    """Raise SavepointError where a crash in the middle of a rename could leave half of a checkpoint."""
    if not checkpoint.files.renames_at_once(checkpoint.location):
        raise SavepointError(
            "this file system renames a directory file by file, so a crash could leave half of a checkpoint",
            where=checkpoint.location,
            fix="keep the checkpoint on a local disk or on HDFS",
        )


def received_since(checkpoint: Checkpoint, savepoint: Savepoint) -> str:
    """Say which batches the sink may have received that the savepoint does not contain; empty if none.

    These are later batches and, after an earlier restore, other batches with the same numbers. A repartitioning is a
    batch without rows, which no sink receives.
    """
    saved_checkpoint = Checkpoint(savepoints.content(checkpoint, savepoint.name), checkpoint.files)
    different = [batch for batch in checkpoint.begun_batches() if not _same_batch(checkpoint, saved_checkpoint, batch)]
    batches_lost = [batch for batch in different if not _only_repartitions(checkpoint, batch)]
    if not batches_lost:
        return ""
    committed_count = len([batch for batch in checkpoint.committed_batches() if batch in batches_lost])
    open_ones = len(batches_lost) - committed_count
    words = [f"{committed_count} committed" if committed_count else "", f"{open_ones} started" if open_ones else ""]
    those = f"batch {batches_lost[0]}" if len(batches_lost) == 1 else f"batches {batches_lost[0]} to {batches_lost[-1]}"
    kinds = ", ".join(filter(None, words))
    return f"the sink may have received {those} ({kinds}), which the savepoint does not contain"


def finish(checkpoint: Checkpoint) -> bool:
    """Finish an interrupted restore, and return whether there was one. Safe whenever the query does not run."""
    files, location = checkpoint.files, checkpoint.location
    if not files.exists(_journal(checkpoint)):
        files.delete(_fresh(checkpoint))  # the swap had not started
        return False
    file_sink_log.adjust_to(checkpoint, json.loads(files.read(_journal(checkpoint)))["batch"])
    if files.exists(_fresh(checkpoint)):
        if files.exists(location):
            files.rename(location, _old(checkpoint))
        files.rename(_fresh(checkpoint), location)
    files.delete(_old(checkpoint))
    files.delete(_journal(checkpoint))
    return True


def is_unfinished(checkpoint: Checkpoint) -> bool:
    return checkpoint.files.exists(_journal(checkpoint))


def _build(checkpoint: Checkpoint, savepoint: Savepoint) -> None:
    files, root = checkpoint.files, savepoints.content(checkpoint, savepoint.name)
    for left_over in (_fresh(checkpoint), _old(checkpoint)):
        files.delete(left_over)
    for file in savepoint.files:
        files.same(f"{root}/{file.name}", f"{_fresh(checkpoint)}/{file.name}")


def _keep(checkpoint: Checkpoint) -> str:
    """Keep the present checkpoint as a savepoint, and return its name; empty if no batch was committed.

    A damaged checkpoint is copied unchanged, and the path of the copy is returned.
    """
    if checkpoint.batches().finished < 0:
        return ""
    now = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    try:
        return savepoints.make(checkpoint, savepoints.free_name(checkpoint, f"before-restore-{now}")).name
    except DamagedError:
        beside = f"{checkpoint.location}.damaged-{now}"
        for entry in checkpoint.files.walk(checkpoint.location):
            checkpoint.files.same(checkpoint.path(entry.name), f"{beside}/{entry.name}")
        return beside


def _same_batch(checkpoint: Checkpoint, saved_checkpoint: Checkpoint, batch: int) -> bool:
    """Compares the offsets, which show what a batch reads and when it was started."""
    path = saved_checkpoint.path("offsets", batch)
    read = checkpoint.files.read
    return checkpoint.files.exists(path) and read(path) == read(checkpoint.path("offsets", batch))


def _only_repartitions(checkpoint: Checkpoint, batch: int) -> bool:
    with suppress(ValueError):  # an unreadable batch may have processed rows
        before = checkpoint.state_partitions(batch - 1) if batch - 1 in checkpoint.begun_batches() else None
        return before is not None and checkpoint.state_partitions(batch) != before
    return False


def _journal(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.restore.json"


def _fresh(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.restoring"


def _old(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.replaced"
