from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.causes import MANY_SAVEPOINTS
from homeostat.core.events import Notify
from homeostat.core.observation import SavepointSample
from homeostat.policies import registry
from homeostat.testing import play, view_of
from support.state_batches import batches


def played_alerts(sample: SavepointSample | None, **space: object) -> list[str]:
    observed = [replace(each, savepoints=sample) for each in batches(12)]
    commands = play(registry.build("provisioning", {"space": space}), view_of(observed), observed).commands
    return [each.message for each in commands if isinstance(each, Notify) and each.title == MANY_SAVEPOINTS]


@pytest.mark.parametrize(
    "sample", [SavepointSample("/c.savepoints", 21, 5e6), SavepointSample("/c.savepoints", 2, 30e9)]
)
def test_too_many_or_too_large_savepoints_are_reported_once(sample: SavepointSample) -> None:
    (message,) = played_alerts(sample)
    held = f"{sample.count} savepoints in /c.savepoints hold {sample.held_bytes / 1e6:,.0f} MB"
    assert held in message
    assert "homeostat state savepoints" in message


@pytest.mark.parametrize("sample", [None, SavepointSample("/c.savepoints", 20, 20e9)])
def test_few_or_unknown_ones_are_not(sample: SavepointSample | None) -> None:
    assert played_alerts(sample) == []


def test_the_settings_say_how_many_are_too_many() -> None:
    few = SavepointSample("/c.savepoints", 3, 2e9)
    assert played_alerts(few, most_savepoints=2)
    assert played_alerts(few, savepoints="1 GB")
    assert played_alerts(few, most_savepoints=3, savepoints="2 GB") == []
