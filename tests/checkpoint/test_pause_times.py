"""The next pause is predicted from those measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.checkpoint import pause_times
from homeostat.checkpoint.files import LocalFiles
from homeostat.checkpoint.metadata import Checkpoint

if TYPE_CHECKING:
    pass


def checkpoint(path: Path, files: LocalFiles | None = None) -> Checkpoint:
    return Checkpoint(str(path), files or LocalFiles())


def test_the_next_pause_is_foretold_from_those_measured(tmp_path: Path) -> None:
    at = checkpoint(tmp_path / "ckpt")
    assert pause_times.past_pauses(at) == []
    assert (
        pause_times.predicted_s(2_000_000, 0)
        > pause_times.predicted_s(1_000_000, 0)
        > pause_times.predicted_s(0, 0)
        > 0
    )
    usual_s = pause_times.predicted_s(1_000_000, 50_000_000)
    for slower in (3.0, 2.0, 100.0):
        phases_s = {"repartition": usual_s, "start": (slower - 1) * usual_s}
        pause_times.record(at, pause_times.Pause(0.0, 1_000_000, 50_000_000, phases_s))
    assert pause_times.predicted_s(1_000_000, 50_000_000, pause_times.past_pauses(at)) == pytest.approx(3 * usual_s)
    (tmp_path / "ckpt.pauses.json").write_text("[{")
    assert pause_times.past_pauses(at) == []
