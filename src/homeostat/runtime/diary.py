"""What a manager writes for viewers besides its decisions: a record for each batch, and the present state."""

from __future__ import annotations

from homeostat.core.cycle import Trace
from homeostat.core.loop_state import HISTORY_KEPT, State
from homeostat.core.policy import Policy
from homeostat.core.records import Record
from homeostat.runtime.batch_lines import Samples
from homeostat.runtime.present import matrices, present
from homeostat.store.present import MATRICES, PRESENT
from homeostat.store.protocol import Store


class Diary:
    """Called after every step of the loop. Writes only when something is new."""

    def __init__(self, store: Store, run: str, policy: Policy) -> None:
        self._store, self._run, self._policy = store, run, policy
        self._samples = Samples()
        self._unwritten: list[Record] = []

    def note(self, trace: Trace, state: State) -> None:
        """Batches that could not be written are written with the next ones."""
        self._unwritten = [*self._unwritten, *self._samples.new(state)][-HISTORY_KEPT:]
        batches = self._unwritten
        if batches or trace.records:
            self._store.save_state(self._run, PRESENT, present(self._policy, trace, state).to_json())
        if batches:
            self._store.save_state(self._run, MATRICES, matrices(state).to_json())
        self._store.append(self._run, batches)
        self._unwritten = []
