"""Several queries share the executors of one application: they are the sum of what each of them needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from homeostat.core.observation import Observation


def total(shares: Mapping[str, int]) -> int:
    return max(1, sum(shares.values()))


def split(count: int, names: Sequence[str]) -> dict[str, int]:
    """Evenly, the first ones get what is left over; nobody gets none."""
    each, left = divmod(max(count, len(names)), len(names))
    return {name: each + (number < left) for number, name in enumerate(names)}


def observed(shares: Mapping[str, int], query: str, alive: int) -> int:
    """A query's part of the executors that are alive: what it wants, or less if there are fewer than all want."""
    wanted = total(shares)
    if len(shares) == 1:
        return alive
    if alive >= wanted:
        return shares[query]
    return max(1, alive * shares[query] // wanted)


def as_seen_by(shares: Mapping[str, int], query: str, observation: Observation) -> Observation:
    """The slots that are this query's part: in fair pools the others use the rest."""
    if len(shares) == 1:
        return observation
    part = shares[query] / total(shares)
    return replace(observation, workers=replace(observation.workers, slots=observation.workers.slots * part))
