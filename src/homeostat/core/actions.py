"""The kinds of action that the loop can take."""

from __future__ import annotations

SCALE_UP = "scale-up"
SCALE_DOWN = "scale-down"
SCALE_SOURCE = "scale-source"
RETUNE = "retune"
REPLACE = "replace"
ADMIT_MORE = "admit-more"
SWITCH_ON = "switch-on"
ADJUST_SKEW = "adjust-skew"
GATHER = "gather"
ALERT = "alert"
REVERT = "revert"
# Several remedies in one change, each for a different cause.
PLAN = "plan"
BY_HAND = "by-hand"
