"""Progress of commands on a checkpoint."""

from __future__ import annotations

import pytest

from homeostat.cli.state_session import track


def test_off_a_terminal_there_is_no_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track([1, 2, 3], "copying")) == [1, 2, 3]
    assert capsys.readouterr() == ("", "")
