"""Sources of the rows of a demonstration. They also count the rows that the query has read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from homeostat.lab.ledger import last_counted_batch, row_after, source_started_s
from homeostat.lab.load_profile import Load, Profile
from homeostat.lab.source_control import write_control
from homeostat.lab.wordcount import NAME
from homeostat.sim.scenario.spec import WorkloadSpec

# So few that even a slow start leaves no large backlog.
WHILE_STARTING_PER_S = 100.0
# The source's partitions, one per possible executor. More would be slower: on a small machine a task costs more than
# its rows.
PARTITIONS = 6
PROFILE = Profile(WorkloadSpec(rate_per_s=WHILE_STARTING_PER_S))


class Feed(Protocol):
    """Produces the rows of `PROFILE` for one demonstration. Its files are in the directory of the demonstration."""

    @property
    def options(self) -> Mapping[str, Any]:
        """Options of the word count that say where it reads from. Known after `start`."""
        ...

    def start(self, say: Callable[[str], None]) -> None:
        """Produce rows at a low rate, once the query looks for them. The directory has only lease files. `say` gets
        a line if this takes long."""

    def follow(self, load: Load, began_s: float) -> None:
        """Follow a load from now on: pairs of seconds since `began_s` and rows per second.

        The query has already done a batch. Each call replaces the load of the call before."""

    def check(self) -> None:
        """Raises a HomeostatError if no more rows can be produced."""

    def expected_counts(self) -> dict[str, int]:
        """How often each word occurs in the rows of the batches that are in the ledger or committed."""
        ...

    def stop(self) -> None:
        """Stop everything that `start` started. Safe to repeat, and without a start."""


class ExperimentFeed:
    """The experiment source: the query computes the rows itself, from the profile."""

    options: Mapping[str, Any] = {}

    def __init__(self, directory: Path) -> None:
        self._checkpoint, self._ledger = checkpoint_of(directory), ledger_of(directory)
        self._control = directory / "control" / f"{NAME}.json"

    def start(self, say: Callable[[str], None]) -> None:
        """The source starts with the first batch."""

    def follow(self, load: Load, began_s: float) -> None:
        write_control(self._control, load=factors(load, began_s - source_started_s(self._checkpoint)))

    def check(self) -> None:
        """It cannot fail on its own."""

    def expected_counts(self) -> dict[str, int]:
        batch_id = last_counted_batch(self._ledger, self._checkpoint)
        return PROFILE.expected_counts(row_after(self._checkpoint, batch_id))

    def stop(self) -> None:
        """The source stops with the query."""


def factors(load: Load, began_s: float) -> Load:
    """This load as factors of the rate of `PROFILE`, which had produced rows for `began_s` seconds before the load."""
    return tuple((began_s + at_s, rate_per_s / WHILE_STARTING_PER_S) for at_s, rate_per_s in load)


def checkpoint_of(directory: Path) -> Path:
    return directory / "checkpoints" / NAME


def ledger_of(directory: Path) -> Path:
    return directory / "ledger"
