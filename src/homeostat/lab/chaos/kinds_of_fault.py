"""Kinds of fault, and the random order in which they are injected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from homeostat.core.errors import HomeostatError
from homeostat.lab.chaos.deployment import Deployment

# Limits are generous: they only show whether the application recovers at all, and the report has the times. A restart
# of everything takes half a minute on an idle machine with two cores, and several times as long on a busy one.
SOON_S, RESTART_S, WHOLE_RESTART_S = 180.0, 300.0, 420.0


class InjectionError(HomeostatError):
    """There was no target for the fault, such as a running executor."""


@dataclass(frozen=True, slots=True)
class Injection:
    """The injected fault. `holds` must become true in addition to the usual signs of recovery. `failure` describes a
    failure that is already certain, such as a second manager that was not refused. `executor` is the one that was hit,
    if any."""

    detail: str
    holds: Callable[[], bool] = lambda: True
    failure: str = ""
    executor: str = ""


Inject = Callable[[Deployment, Random], Injection]


@dataclass(frozen=True, slots=True)
class FaultKind:
    """`inject` returns when the fault is over. `ANSWERS` has the actions that each kind justifies."""

    name: str
    inject: Inject
    limit_s: float = SOON_S


def draw(kinds: Sequence[FaultKind], chance: Random) -> Iterator[FaultKind]:
    """Yield kinds without end. Every kind comes once before any comes again, so that a short run misses few."""
    while True:
        deck = list(kinds)
        chance.shuffle(deck)
        yield from deck
