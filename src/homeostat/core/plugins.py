"""Runs the plug-ins, and skips those that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from homeostat.core.effects import Effects
from homeostat.core.loop_state import State, since
from homeostat.core.policy_definition import Policy
from homeostat.core.topology import Topology
from homeostat.core.validation import flaw
from homeostat.core.view import View, Window

_PlugIn = TypeVar("_PlugIn")
_Finding = TypeVar("_Finding")


def look(policy: Policy, state: State, now_s: float) -> View:
    start_s = now_s - policy.window_s
    if policy.fresh_window:
        start_s = max(start_s, state.epoch_since_s)
    window = tuple(o for o in state.window if o.at_s > start_s)
    if len(window) < policy.least_window:
        window = state.window[-policy.least_window :]
    return View(
        now_s=now_s,
        topology=state.topology,
        configuration=state.observed,
        capabilities=state.capabilities,
        objective=state.objective,
        window=Window(window),
        earlier=state.earlier.observations,
        history=state.history,
        epoch=state.epoch,
        standing_since_s=since(state.diagnoses),
        trust=state.trust,
        traffic=state.traffic,
        sources=tuple(state.sources.values()),
        violation_cost=policy.violation_cost,
        latest=Window(state.latest),
    )


class Runner:
    """Runs each plug-in separately. A plug-in that fails is reported and skipped, and so is an invalid finding."""

    def __init__(self, effects: Effects, topology: Topology) -> None:
        self._effects, self._topology = effects, topology

    def run(
        self, plug_ins: Sequence[_PlugIn], kind: type[_Finding], call: Callable[[_PlugIn], Iterable[_Finding]]
    ) -> list[_Finding]:
        findings: list[_Finding] = []
        for plug_in in plug_ins:
            try:
                results = list(call(plug_in))
                flaws = [flaw(finding, kind, self._topology) for finding in results]
            except (Exception, SystemExit) as error:
                self._effects.left_out(_name(plug_in), type(error).__name__, f"{type(error).__name__}: {error}")
                continue
            for finding, wrong in zip(results, flaws, strict=True):
                if wrong:
                    self._effects.left_out(_name(plug_in), "finding", wrong)
                else:
                    findings.append(finding)
        return findings


def _name(plug_in: object) -> str:
    return str(getattr(plug_in, "name", type(plug_in).__name__))
