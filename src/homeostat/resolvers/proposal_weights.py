"""How resolvers weigh the benefit of an action against its cost.

The arbiter compares proposals by success rate × probability × benefit − cost. A benefit of 1 means that the problem is
solved completely. All weights are choices.
"""

from __future__ import annotations

# A pause of this many seconds costs as much as the largest benefit brings. A shorter time would make the loop avoid
# restarts that help, a longer one would let it restart for little.
PAUSE_WORTH_S = 3000.0
PAUSE_WEIGHT = 1.0 / PAUSE_WORTH_S
# The cost of doubling the resources. Small, because an objective comes before money: it only decides between proposals
# that help equally.
RESOURCE_WEIGHT = 0.02
# The cost of moving rows or workers without a pause: caches are cold afterwards.
DISTURBANCE = 0.05
# The least benefit of an action against a diagnosed problem. A smaller one would ignore mild problems.
LEAST_BENEFIT = 0.2
# The severity of a problem whose symptoms have none.
USUAL_SEVERITY = 0.5
# By which share a batch must become shorter to be worth a change of how its rows are spread. A smaller share is within
# the noise of batches, so the trial could not confirm it.
LEAST_SHORTER = 0.05
# Over how many observations a load is averaged at most. More of them give a steadier mean of an older load.
LONGEST_MEAN = 60
