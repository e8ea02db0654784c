"""Lines for the person who runs the application."""

from __future__ import annotations

import pytest

from homeostat.runtime.messages import say


def test_a_message_goes_to_stderr_under_our_name(capsys: pytest.CaptureFixture[str]) -> None:
    say("the driver failed")
    assert capsys.readouterr() == ("", "homeostat: the driver failed\n")
