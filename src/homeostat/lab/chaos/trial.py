"""One fault, and its result."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault, from `began_s` on. `recover_s` counts from its end until the application was whole again, None if it
    was not within the limit; `problem` then says why not. `exits` counts how often the command ended. It was
    over at `over_s`, recovered or not. `executor` is the one that was hit, if any."""

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
