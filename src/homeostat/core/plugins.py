"""Runs the plug-ins: what they see, and what happens to one that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from homeostat.core.effects import Effects
from homeostat.core.loop_state import State, since
from homeostat.core.policy import Policy
from homeostat.core.topology import Topology
from homeostat.core.validation import flaw
from homeostat.core.view import View, Window

_PlugIn = TypeVar("_PlugIn")
_Finding = TypeVar("_Finding")


def look(policy: Policy, state: State, now_s: float) -> View:
    start_s = now_s - policy.window_s
    if policy.fresh_window:
        start_s = max(start_s, state.epoch_since_s)
    return View(
        now_s=now_s,
        topology=state.topology,
        configuration=state.observed,
        capabilities=state.capabilities,
        objective=state.objective,
        window=Window(tuple(o for o in state.window if o.at_s > start_s)),
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
    """Runs each plug-in on its own. One that fails is reported and left out, and so is an invalid finding."""

    def __init__(self, effects: Effects, topology: Topology) -> None:
        self._effects, self._topology = effects, topology

    def run(
        self, plug_ins: Sequence[_PlugIn], kind: type[_Finding], call: Callable[[_PlugIn], Iterable[_Finding]]
    ) -> list[_Finding]:
        findings: list[_Finding] = []
        for plug_in in plug_ins:
            name = str(getattr(plug_in, "name", type(plug_in).__name__))
            try:
                results = list(call(plug_in))
                flaws = [flaw(finding, kind, self._topology) for finding in results]
            except (Exception, SystemExit) as error:
                self._effects.left_out(name, type(error).__name__, f"{type(error).__name__}: {error}")
                continue
            findings += [finding for finding, wrong in zip(results, flaws, strict=True) if not wrong]
            for wrong in filter(None, flaws):
                self._effects.left_out(name, "finding", wrong)
        return findings
