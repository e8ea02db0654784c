"""`hs.attach` where there is nothing to take hold of; with Spark it is in tests/spark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from homeostat.core.configuration import TRIGGER_S
from homeostat.core.errors import ConfigError
from homeostat.runtime.attach import Attachment, attach
from homeostat.runtime.launch import CAPABILITIES, read_json
from homeostat.settings_file import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ConnectSession:
    """All that is asked of a session of Spark Connect, whose client may not be installed."""

    version = "4.3.0"


ConnectSession.__module__ = "pyspark.sql.connect.session"


def test_through_connect_it_says_why_it_stays_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attached = Attachment(cast("SparkSession", ConnectSession()), load(None), None, tmp_path / "kept", {})
    attached.begin()
    assert "a Spark Connect session" in capsys.readouterr().err
    assert not any(finding["can"] for finding in read_json(tmp_path / "kept" / CAPABILITIES))
    attached.stop()
    assert not attached.running


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        ({"trigger": (5, "2 s")}, r"trigger = \(5, 2\) must be \(minimum, maximum\), both at least 0"),
        ({"rows_per_trigger": (0, 10)}, r"rows_per_trigger = \(0, 10\) must be \(minimum, maximum\), both at least 1"),
        ({"rows_per_trigger": 10}, "cannot parse rows_per_trigger = 10 .give a pair"),
        ({"trigger": ("soon", "later")}, "trigger = .*soon"),
    ],
)
def test_bounds_that_are_none_are_one_clear_line(bounds: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    session = cast("SparkSession", ConnectSession())
    with pytest.raises(ConfigError) as raised:
        attach(session, directory=tmp_path / "kept", **bounds)
    assert re.search(sentence, raised.value.line)


def test_a_bound_may_have_a_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    attached = attach(cast("SparkSession", ConnectSession()), directory=tmp_path / "kept", trigger=(1, "20 s"))
    assert attached.bounds == {TRIGGER_S: (1.0, 20.0)}
    attached.stop()
