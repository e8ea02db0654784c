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
