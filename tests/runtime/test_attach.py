"""`hs.attach` where there is nothing to take hold of; with Spark it is in tests/spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from homeostat.config import load
from homeostat.runtime.attach import Attachment
from homeostat.runtime.launch import CAPABILITIES, read_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ConnectSession:
    """All that is asked of a session of Spark Connect, whose client may not be installed."""

    version = "4.3.0"


ConnectSession.__module__ = "pyspark.sql.connect.session"


def test_through_connect_it_says_why_it_stays_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attached = Attachment(cast("SparkSession", ConnectSession()), load(None), None, tmp_path / "kept")
    attached.start()
    assert "a Spark Connect session" in capsys.readouterr().err
    assert not any(finding["can"] for finding in read_json(tmp_path / "kept" / CAPABILITIES))
    attached.stop()
    assert not attached.running
