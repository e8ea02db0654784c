"""Two processes never work on one checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeostat.checkpoint.lock import HeldError, hold_lock


def test_two_do_not_work_on_a_checkpoint_at_once(root: Path) -> None:
    with (
        hold_lock(str(root)),
        pytest.raises(HeldError, match=f"this checkpoint is in use by process {os.getpid()}"),
        hold_lock(str(root)),
    ):
        pass
    with hold_lock(str(root)):
        pass


@pytest.mark.parametrize("spelling", ["link", "ckpt/.", "ckpt/../ckpt", "folder/ckpt", "ckpt//", "file:"])
def test_a_link_or_another_spelling_does_not_go_round_the_lock(root: Path, spelling: str) -> None:
    (root.parent / "link").symlink_to(root)
    (root.parent / "folder").symlink_to(root.parent)
    other = f"file:{root}" if spelling == "file:" else f"{root.parent}/{spelling}"
    with hold_lock(str(root)), pytest.raises(HeldError), hold_lock(other):
        pass
    with hold_lock(other), pytest.raises(HeldError), hold_lock(str(root)):
        pass
