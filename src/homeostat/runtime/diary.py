"""The data that a manager writes for viewers in addition to its decisions: a record for each batch, and the present
state.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from homeostat.core.cycle import Trace
from homeostat.core.loop_state import HISTORY_KEPT, State
from homeostat.core.policy_definition import Policy
from homeostat.core.records import Record
from homeostat.runtime.batch_lines import Samples
from homeostat.runtime.present import matrices, present
from homeostat.store.present import MATRICES, PRESENT
from homeostat.store.protocol import Store


class Diary:
    """Called after every step of the loop. Writes only when something is new.

    Between two writes of the present state at least `pause_s` pass. A simulation takes many steps in that time, and
    viewers do not need each of them. At the end of the simulation, `close` writes the last state.
    """

    def __init__(
        self,
        store: Store,
        run: str,
        policy: Policy,
        *,
        pause_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._run, self._policy = store, run, policy
        self._pause_s, self._clock = pause_s, clock
        self._next_s = clock()
        self._samples = Samples()
        self._unwritten: list[Record] = []
        self._new_step: tuple[Trace, State] | None = None
        self._new_batch: State | None = None

    def note(self, trace: Trace, state: State) -> None:
        """Batches that could not be written are written with the next ones."""
        self._unwritten = [*self._unwritten, *self._samples.new(state)][-HISTORY_KEPT:]
        batches = self._unwritten
        if batches or trace.records:
            self._new_step = trace, state
        if batches:
            self._new_batch = state
        if self._clock() >= self._next_s:
            self.close()
        self._store.append(self._run, batches)
        self._unwritten = []

    def close(self) -> None:
        """Write the present state, if it has changed since it was written."""
        if self._new_step is not None:
            self._store.save_state(self._run, PRESENT, present(self._policy, *self._new_step).to_json())
        if self._new_batch is not None:
            self._store.save_state(self._run, MATRICES, matrices(self._new_batch).to_json())
        self._new_step = self._new_batch = None
        self._next_s = self._clock() + self._pause_s
