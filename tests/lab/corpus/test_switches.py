"""A switch is on while its file exists, and says how strong the fault is."""

from __future__ import annotations

from pathlib import Path

from homeostat.lab.corpus.switches import Switches, strength_of


def test_a_switch_is_off_until_it_is_turned_on(tmp_path: Path) -> None:
    switches = Switches(tmp_path / "on")
    path = switches.path("slow")
    assert strength_of(path) == 0.0
    switches.turn_on("slow", 2.5)
    assert strength_of(path) == 2.5
    switches.turn_on("slow", 4.0)
    assert strength_of(path) == 4.0
    switches.turn_off("slow")
    switches.turn_off("slow")
    assert strength_of(path) == 0.0
