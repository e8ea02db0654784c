"""Limits on how little evidence a decision may rest on, shared by every part that decides."""

from __future__ import annotations

# Observations in a row that must agree before they count as evidence. Fewer react faster but mistake one odd batch for
# a change: two can agree by chance. A choice.
LEAST_OBSERVATIONS = 3
# The share of a component's tasks that must have been measured to speak for all of them. A smaller share would accept
# more batches, but the tasks without a measurement could be the slow ones. A choice.
LEAST_KNOWN = 0.5
