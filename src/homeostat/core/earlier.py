"""A few whole observations of the past: they show what was usual before the window began."""

from __future__ import annotations

from dataclasses import dataclass

from homeostat.core.observation import Observation

# How many observations are kept, and how many tasks they may have in all. More would add little information. Choices.
_KEPT, _TASKS_KEPT = 48, 100_000
# The fewest that are kept, however many tasks they have. A choice.
_LEAST_KEPT = 8
# The largest distance between two kept observations, in observations. With one every ten seconds, they reach back about
# four hours. A larger one would count a problem of yesterday as usual. A choice.
_LONGEST_STRIDE = 32


@dataclass(frozen=True, slots=True)
class Earlier:
    """Evenly spaced observations with rows: all at first, later every second one, every fourth one, and so on."""

    observations: tuple[Observation, ...] = ()
    stride: int = 1
    skipped: int = 0

    def after(self, observation: Observation) -> Earlier:
        if all(flow.rows == 0 for flow in observation.flows):
            return self
        if self.skipped + 1 < self.stride:
            return Earlier(self.observations, self.stride, self.skipped + 1)
        kept = (*self.observations, observation)
        if not _is_too_much(kept):
            return Earlier(kept, self.stride)
        if self.stride < _LONGEST_STRIDE:
            return Earlier(kept[::2], 2 * self.stride)
        return Earlier(kept[1:], self.stride)


def _is_too_much(kept: tuple[Observation, ...]) -> bool:
    tasks = sum(observation.task_count for observation in kept)
    return len(kept) > _KEPT or (tasks > _TASKS_KEPT and len(kept) > _LEAST_KEPT)
