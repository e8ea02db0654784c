"""Two processes never work on one checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeostat.checkpoint.lock import HeldError, held


def test_two_do_not_work_on_a_checkpoint_at_once(root: Path) -> None:
    with (
        held(str(root)),
        pytest.raises(HeldError, match=f"this checkpoint is in use by process {os.getpid()}"),
        held(str(root)),
    ):
        pass
    with held(str(root)):
        pass
