"""Put a savepoint back: built beside the checkpoint, then swapped by renames, and finished after a crash."""

from __future__ import annotations

import json
import time
from contextlib import suppress

from homeostat.checkpoint import file_sink_log, savepoints
from homeostat.checkpoint.damage import DamagedError
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.savepoints import Savepoint, SavepointError
from homeostat.checkpoint.state_reader import Track, unseen


def restore(checkpoint: Checkpoint, name: str, *, force: bool = False, keep: bool = True, track: Track = unseen) -> str:
    """The query must not run. What was there is kept as another savepoint, whose name this returns; what is damaged
    is kept in a directory of its own."""
    finish(checkpoint)
    savepoint = savepoints.read(checkpoint, name)
    savepoints.verify(checkpoint, savepoint, track)
    if not force and (seen := seen_since(checkpoint, savepoint)):
        raise SavepointError(
            f"{seen}; going back would process their rows again under other numbers",
            where=checkpoint.location,
            fix="--force, if the sink can take rows twice or is set back as well",
        )
    kept = _keep(checkpoint) if keep else ""
    _build(checkpoint, savepoint)
    checkpoint.files.write(_journal(checkpoint), json.dumps({"savepoint": name, "batch": savepoint.batch}).encode())
    finish(checkpoint)
    return kept


def seen_since(checkpoint: Checkpoint, savepoint: Savepoint) -> str:
    """What a sink may have seen of batches that the savepoint does not hold; empty if nothing.

    Those are later ones, and after an earlier way back others under the same numbers. A repartitioning is a batch
    without rows, which no sink gets to see.
    """
    saved = Checkpoint(savepoints.content(checkpoint, savepoint.name), checkpoint.files)
    unlike = [batch for batch in checkpoint.begun() if not _same_batch(checkpoint, saved, batch)]
    given = [batch for batch in unlike if not _only_repartitions(checkpoint, batch)]
    if not given:
        return ""
    committed = len([batch for batch in checkpoint.committed() if batch in given])
    open_ones = len(given) - committed
    words = [f"{committed} committed" if committed else "", f"{open_ones} begun" if open_ones else ""]
    those = f"batch {given[0]}" if len(given) == 1 else f"batches {given[0]} to {given[-1]}"
    return f"the sink may have seen {those} ({', '.join(filter(None, words))}), not held by the savepoint"


def finish(checkpoint: Checkpoint) -> bool:
    """Finish a swap that was cut short; whether there was one. Safe to call at any time the query does not run."""
    files, location = checkpoint.files, checkpoint.location
    if not files.exists(_journal(checkpoint)):
        files.delete(_fresh(checkpoint))  # never came to the swap
        return False
    file_sink_log.follow(checkpoint, json.loads(files.read(_journal(checkpoint)))["batch"])
    if files.exists(_fresh(checkpoint)):
        if files.exists(location):
            files.rename(location, _old(checkpoint))
        files.rename(_fresh(checkpoint), location)
    files.delete(_old(checkpoint))
    files.delete(_journal(checkpoint))
    return True


def unfinished(checkpoint: Checkpoint) -> bool:
    return checkpoint.files.exists(_journal(checkpoint))


def _build(checkpoint: Checkpoint, savepoint: Savepoint) -> None:
    files, root = checkpoint.files, savepoints.content(checkpoint, savepoint.name)
    for left_over in (_fresh(checkpoint), _old(checkpoint)):
        files.delete(left_over)
    for file in savepoint.files:
        files.same(f"{root}/{file.name}", f"{_fresh(checkpoint)}/{file.name}")


def _keep(checkpoint: Checkpoint) -> str:
    """Where nothing was committed there is nothing to go back to; what is damaged is kept as it is, beside."""
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


def _same_batch(checkpoint: Checkpoint, saved: Checkpoint, batch: int) -> bool:
    """What a batch reads, and when it was begun, stands in its offsets."""
    path = saved.path("offsets", batch)
    read = checkpoint.files.read
    return checkpoint.files.exists(path) and read(path) == read(checkpoint.path("offsets", batch))


def _only_repartitions(checkpoint: Checkpoint, batch: int) -> bool:
    with suppress(ValueError):  # what cannot be read may have been anything
        before = checkpoint.state_partitions(batch - 1) if batch - 1 in checkpoint.begun() else None
        return before is not None and checkpoint.state_partitions(batch) != before
    return False


def _journal(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.restore.json"


def _fresh(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.restoring"


def _old(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.replaced"
