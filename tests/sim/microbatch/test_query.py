"""Batches follow the trigger, and a restart repeats the batch that was under way."""

from __future__ import annotations

from homeostat.core.configuration import Restart
from homeostat.sim.microbatch.layout import TRIGGER_KNOB
from support.simulated_query import SimulatedQuery


def test_a_batch_starts_at_every_trigger_and_takes_what_arrived() -> None:
    simulated = SimulatedQuery()
    simulated.agenda.run(35.0)
    assert [batch.started_s for batch in simulated.batches] == [0.0, 10.0, 20.0, 30.0]
    assert [batch.taken_rows["lines"] for batch in simulated.batches] == [0, 1000, 1000, 1000]
    assert [stage.spec.name for stage in simulated.batches[1].stages] == ["lines", "count"]


def test_a_restart_repeats_the_open_batch_with_the_new_values() -> None:
    simulated = SimulatedQuery()
    simulated.agenda.run(10.1)
    simulated.query.restart(Restart({TRIGGER_KNOB: 20.0}))
    simulated.agenda.run(15.0)
    assert len(simulated.batches) == 1
    simulated.agenda.run(30.0)
    repeated = simulated.batches[1]
    assert (repeated.started_s, repeated.taken_rows["lines"]) == (15.1, 1000)
    assert simulated.query.restarts == 1
    assert simulated.query.values[TRIGGER_KNOB] == 20.0


def test_tasks_with_state_stay_where_their_state_is() -> None:
    simulated = SimulatedQuery()
    simulated.agenda.run(35.0)
    first, second = (batch.stages[-1].placement.executor for batch in simulated.batches[1:3])
    assert first.tolist() == second.tolist()
