"""Counts the savepoints of a checkpoint, and the space that they take."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from homeostat.checkpoint.files import is_local, local_path
from homeostat.checkpoint.savepoints import MANIFEST, root
from homeostat.core.observation import SavepointSample


def savepoint_space(location: str) -> SavepointSample | None:
    """Return None if the checkpoint is not on a local disk: counting would then take a request for each file.

    A file that the checkpoint or another directory still links to takes no space of its own.
    """
    if not is_local(location):
        return None
    place = Path(root(str(local_path(location))))
    links: Counter[tuple[int, int]] = Counter()
    files: dict[tuple[int, int], os.stat_result] = {}
    count = 0
    for folder, folders, names in os.walk(place):
        if MANIFEST in names and Path(folder).parent == place:
            count += 1
        folders.sort()
        for name in names:
            try:
                status = os.lstat(os.path.join(folder, name))
            except OSError:  # deleted meanwhile
                continue
            key = (status.st_dev, status.st_ino)
            links[key] += 1
            files[key] = status
    held_bytes = sum(status.st_size for key, status in files.items() if status.st_nlink <= links[key])
    return SavepointSample(str(place), count, float(held_bytes))
