"""The slow storage waits only for files of a checkpoint, only while it is switched on, and does its work."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

from homeostat.lab.corpus.storage import CHECKPOINT, STATE, SlowStorage


def test_the_command_still_changes_the_mode(tmp_path: Path) -> None:
    usual = shutil.which("chmod")
    files = [tmp_path / "checkpoint" / part / "0" for part in ("offsets", "state")]
    with SlowStorage(tmp_path / "storage") as storage:
        command = shutil.which("chmod")
        assert command != usual
        storage.switches.turn_on(CHECKPOINT, 0.01)
        storage.switches.turn_on(STATE, 0.01)
        for file in files:
            file.parent.mkdir(parents=True)
            file.touch()
            subprocess.run(["chmod", "0600", str(file)], check=True)
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert shutil.which("chmod") == usual
