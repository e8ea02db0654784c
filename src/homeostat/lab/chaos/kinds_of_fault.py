"""What a kind of fault is, and how faults are drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from homeostat.core.causes import SLOW_INSTANCE, UNDER_PROVISIONED
from homeostat.core.errors import HomeostatError
from homeostat.lab.chaos.deployment import Deployment

# Limits are generous: they tell a recovery from none, and the report has the times. A restart of everything takes half
# a minute on an idle machine with two cores, and several times as long on a busy one.
SOON_S, RESTART_S, WHOLE_RESTART_S = 180.0, 300.0, 420.0
# A pause of the query leaves rows waiting, and more executors are a right answer to that.
PAUSE_CAUSES = frozenset({UNDER_PROVISIONED})
SLOW_CAUSES = frozenset({SLOW_INSTANCE, UNDER_PROVISIONED})
NO_CAUSES: frozenset[str] = frozenset()


class InjectionError(HomeostatError):
    """There was nothing to do harm to, such as no executor that runs."""


@dataclass(frozen=True, slots=True)
class Injection:
    """What was done. `holds` must become true beside the usual signs of recovery. `failure` is what went wrong already,
    such as a second manager that was not refused."""

    detail: str
    holds: Callable[[], bool] = lambda: True
    failure: str = ""


Inject = Callable[[Deployment, Random], Injection]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """`inject` returns when the fault is over. `causes` are the diagnoses that it may rightly lead to."""

    name: str
    inject: Inject
    limit_s: float = SOON_S
    causes: frozenset[str] = NO_CAUSES


def draw(kinds: Sequence[FaultKind], chance: Random) -> Iterator[FaultKind]:
    """Without end. Every kind comes once before any comes again, so that a short run misses few."""
    while True:
        deck = list(kinds)
        chance.shuffle(deck)
        yield from deck
