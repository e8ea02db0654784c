"""How much of this machine other programs use while a run takes place."""

from __future__ import annotations

import os


class HostUse:
    """The measurement begins when the object is created."""

    def __init__(self) -> None:
        self._busy_s, self._all_s = _machine_s()
        self._own_s = _own_s()

    def others(self) -> float:
        """The share of the machine's CPU time that other processes used, not counting those that this one started."""
        busy_s, all_s = _machine_s()
        own_now_s = _own_s()
        own_s = sum(max(0.0, seconds - self._own_s.get(pid, 0.0)) for pid, seconds in own_now_s.items())
        spent_s = all_s - self._all_s
        return min(1.0, max(0.0, (busy_s - self._busy_s - own_s) / spent_s)) if spent_s > 0 else 0.0


def _machine_s() -> tuple[float, float]:
    """The CPU seconds in use and all CPU seconds, of all cores since the machine started."""
    import psutil

    times = psutil.cpu_times()
    all_s = sum(times[:8])
    return all_s - times.idle - getattr(times, "iowait", 0.0), all_s


def _own_s() -> dict[int, float]:
    """CPU seconds of this process and all that it started, including children that have ended."""
    import psutil

    used: dict[int, float] = {}
    for process in [psutil.Process(os.getpid()), *psutil.Process().children(recursive=True)]:
        try:
            used[process.pid] = sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return used
