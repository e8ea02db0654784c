"""Whether other processes use the CPU that the tasks of the latest batches need."""

from __future__ import annotations

import math
from collections.abc import Sequence

from homeostat.core.observation import HostSample, Observation
from homeostat.models.batch_parts import BatchParts

# A host is full from the first share of used cores on. Other processes take time from the tasks if they use the second
# share of the cores of a full host, or the third share of the cores of any host. Choices.
FULL_HOST, MUCH_TAKEN, MOST_TAKEN = 0.85, 0.1, 0.3


def cpu_is_taken(recent: Sequence[tuple[Observation, BatchParts]]) -> bool:
    """Whether other processes use much of a host that is full while tasks run, or a large share of any host.

    A batch that mostly waits on the driver leaves its hosts idle for most of the time.
    """
    measured = [(o, parts) for o, parts in recent if any(math.isfinite(host.others) for host in o.hosts)]
    if not measured:
        return False
    observation, parts = measured[-1]
    stages_s = sum(stage.seconds for stage in parts.stages)
    running = min(1.0, stages_s / parts.seconds) if parts.seconds > 0 else 1.0
    return any(_is_taken(host, max(running, MUCH_TAKEN)) for host in observation.hosts)


def _is_taken(host: HostSample, running: float) -> bool:
    own_while_running = (host.busy - host.others) / running
    full = own_while_running + host.others >= FULL_HOST
    return host.others >= MOST_TAKEN or (host.others >= MUCH_TAKEN and full)
