"""Simulated time runs its entries in order, and cancelled entries not at all."""

from __future__ import annotations

from math import inf

from homeostat.sim.microbatch.agenda import CLUSTER, PROGRESS, Agenda


def test_entries_run_by_time_then_order_then_as_they_were_made() -> None:
    agenda, ran = Agenda(), list[str]()
    agenda.at(2.0, PROGRESS, lambda: ran.append("late"))
    agenda.at(1.0, PROGRESS, lambda: ran.append("progress"))
    agenda.at(1.0, CLUSTER, lambda: ran.append("cluster"))
    agenda.at(1.0, PROGRESS, lambda: ran.append("second"))
    agenda.at(inf, CLUSTER, lambda: ran.append("never"))
    agenda.run(1.5)
    assert (ran, agenda.now_s) == (["cluster", "progress", "second"], 1.5)
    agenda.run(3.0)
    assert ran[-1] == "late"


def test_forgotten_entries_do_not_run() -> None:
    agenda, ran = Agenda(), list[str]()
    agenda.at(1.0, PROGRESS, lambda: ran.append("lapsed"), may_lapse=True)
    agenda.at(1.0, PROGRESS, lambda: ran.append("kept"))
    agenda.forget()
    agenda.at(2.0, PROGRESS, lambda: ran.append("new"), may_lapse=True)
    agenda.run(5.0)
    assert ran == ["kept", "new"]
