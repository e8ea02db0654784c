"""Simulated time runs its entries in order, and cancelled entries not at all."""

from __future__ import annotations

from math import inf

from homeostat.sim.microbatch.agenda import CLUSTER, PROGRESS, Agenda


def test_entries_run_by_time_then_order_then_as_they_were_made() -> None:
    agenda, entries = Agenda(), list[str]()
    agenda.at(2.0, PROGRESS, lambda: entries.append("late"))
    agenda.at(1.0, PROGRESS, lambda: entries.append("progress"))
    agenda.at(1.0, CLUSTER, lambda: entries.append("cluster"))
    agenda.at(1.0, PROGRESS, lambda: entries.append("second"))
    agenda.at(inf, CLUSTER, lambda: entries.append("never"))
    agenda.run(1.5)
    assert (entries, agenda.now_s) == (["cluster", "progress", "second"], 1.5)
    agenda.run(3.0)
    assert entries[-1] == "late"


def test_forgotten_entries_do_not_run() -> None:
    agenda, entries = Agenda(), list[str]()
    agenda.at(1.0, PROGRESS, lambda: entries.append("lapsed"), may_lapse=True)
    agenda.at(1.0, PROGRESS, lambda: entries.append("kept"))
    agenda.forget()
    agenda.at(2.0, PROGRESS, lambda: entries.append("new"), may_lapse=True)
    agenda.run(5.0)
    assert entries == ["kept", "new"]
