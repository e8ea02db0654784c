"""A run of the corpus as Homeostat would have observed it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from homeostat.core.observation import Observation
from homeostat.core.topology import Topology
from homeostat.lab.corpus.labels import Label
from homeostat.spark.outside.event_log import OBSERVED_KINDS, EventLog
from homeostat.spark.outside.log_observations import LogObserver


def observations(directory: Path, label: Label) -> tuple[Topology, list[Observation]]:
    """The components of the query, and its batches in order. The trigger is not in the log, but in the label."""
    observer = LogObserver()
    log = EventLog(directory / label.log, kinds=OBSERVED_KINDS)
    observed = [_with_trigger(each, label.trigger_s) for each in observer.observations(log.new_events())]
    return observer.topology(label.run), observed


def _with_trigger(observation: Observation, trigger_s: float) -> Observation:
    return replace(observation, flows=tuple(replace(flow, trigger_s=trigger_s) for flow in observation.flows))
