"""Processes keep their names for life, and a replacement goes to another host."""

from __future__ import annotations

from homeostat.sim.dataflow.processes import Processes


def test_a_replacement_has_a_new_name_and_another_host() -> None:
    processes = Processes({"count": 2}, hosts=2)
    before = processes.hosts("count").tolist()
    processes.replace("count-0#0")
    assert processes.ids("count") == ["count-0#1", "count-1#0"]
    assert processes.hosts("count").tolist()[0] != before[0]
    assert processes.find("count-0#0") is None
    assert processes.find("count-0#1") == ("count", 0)


def test_an_instance_that_comes_back_never_has_an_old_name() -> None:
    processes = Processes({"count": 2}, hosts=1)
    processes.resize("count", 1)
    processes.resize("count", 2)
    assert processes.ids("count") == ["count-0#0", "count-1#1"]
