"""One fault, and its result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault, from `began_s` on. `recover_s` is the time from its end until the application was whole again; None if
    that took longer than the limit, for the reason in `problem`. `exits` counts how often the command ended. The trial
    was over at `over_s`, recovered or not. `executor` is the one that was hit, if any."""

    kind: str
    began_s: float
    detail: str
    recover_s: float | None
    problem: str = ""
    exits: int = 0
    over_s: float = 0.0
    executor: str = ""

    @property
    def survived(self) -> bool:
        return self.recover_s is not None and not self.problem
