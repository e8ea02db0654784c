"""The held source says the same as the experiment source, after a while."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.lab.corpus import held_source
from homeostat.lab.corpus.held_source import HeldReader, HeldSource
from homeostat.lab.load_profile import Profile
from homeostat.lab.source import Source
from homeostat.lab.source_control import FORMAT
from homeostat.sim.scenario.spec import WorkloadSpec

PROFILE = Profile(WorkloadSpec(rate_per_s=1000.0))


def test_it_waits_as_long_as_the_switch_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[str] = []
    monkeypatch.setattr(held_source, "pause", waits.append)
    hold = str(tmp_path / "source-bound")
    reader = HeldReader({"profile": PROFILE.to_json(), "hold": hold, "start": "0"})
    first = reader.initialOffset()
    assert reader.latestOffset(first, reader.getDefaultReadLimit())["row"] > 0
    assert waits == [hold]


def test_it_has_the_name_of_the_experiment_source() -> None:
    assert HeldSource.name() == Source.name() == FORMAT
