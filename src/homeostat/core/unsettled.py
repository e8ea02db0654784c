"""What the loop detects while the configuration is too new for a cycle.

Sources report their state without a batch. Executors that keep dying change the configuration again and again, so that
no cycle would ever be due. Detectors and diagnosers with `while_unsettled = True` read the history and the sources, and
their alerts are sent at once. If they find something about the application, and not only about its sources, detectors
with `in_any_configuration = True` look at the latest batches, whatever configuration they had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from homeostat.core.actions import ALERT
from homeostat.core.deciding import send_alerts
from homeostat.core.effects import Effects
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.loop_state import State
from homeostat.core.plugins import Runner
from homeostat.core.policy_definition import Policy
from homeostat.core.symptoms import SOURCE_TROUBLE, kind_and_subject
from homeostat.core.view import View, Window

_PlugIn = TypeVar("_PlugIn")


def notice(
    policy: Policy, state: State, view: View, effects: Effects
) -> tuple[State, tuple[Symptom, ...], tuple[Diagnosis, ...]]:
    """All other findings stay as they were."""
    detectors = _with(policy.detectors, "while_unsettled")
    if not detectors or not (state.history or state.sources):
        return state, (), ()
    runner = Runner(effects, view.topology)
    symptoms = runner.run(detectors, Symptom, lambda plug_in: plug_in.detect(view))
    if any(symptom.kind != SOURCE_TROUBLE for symptom in symptoms):
        view = replace(view, window=Window(state.latest))
        others = _with(policy.detectors, "in_any_configuration")
        symptoms += runner.run(others, Symptom, lambda plug_in: plug_in.detect(view))
        detectors += others
    kinds = {detector.name for detector in detectors}
    mine = {key: standing for key, standing in state.symptoms.items() if kind_and_subject(key[0])[0] in kinds}
    if not symptoms and not mine:
        return state, (), ()
    symptoms, standing = effects.symptoms(mine, symptoms)
    others_standing = {key: each for key, each in state.symptoms.items() if key not in mine}
    diagnoses = runner.run(
        _with(policy.diagnosers, "while_unsettled"), Diagnosis, lambda plug_in: plug_in.diagnose(view, symptoms)
    )
    over = {kind_and_subject(key[0])[1] for key in mine if key not in standing}
    causes = {diagnosis.cause for diagnosis in diagnoses} | over
    named = {key: each for key, each in state.diagnoses.items() if key[0] in causes}
    diagnoses, named_now = effects.diagnoses(named, diagnoses)
    kept = {key: each for key, each in state.diagnoses.items() if key not in named}
    state = replace(state, symptoms={**others_standing, **standing}, diagnoses={**kept, **named_now})
    proposals = runner.run(
        _with(policy.resolvers, "while_unsettled"), Proposal, lambda plug_in: plug_in.resolve(view, diagnoses)
    )
    sent = state.alerts
    state = send_alerts(state, [proposal for proposal in proposals if proposal.kind == ALERT], effects)
    return replace(state, alerts={**sent, **state.alerts}), tuple(symptoms), tuple(diagnoses)


def _with(plug_ins: Sequence[_PlugIn], attribute: str) -> list[_PlugIn]:
    return [plug_in for plug_in in plug_ins if getattr(plug_in, attribute, False)]
