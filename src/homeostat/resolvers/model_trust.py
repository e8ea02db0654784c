"""Whether models still choose the sizes: how far predictions may be off says the objective, else a setting."""

from __future__ import annotations

import math

from homeostat.core.view import View


def doubted(view: View, component: str, most_error: float) -> bool:
    """Whether predictions about it have been off by more than is allowed; `most_error` is the setting."""
    trust = view.trust.get(component)
    return trust is not None and trust.error > _allowed(view, most_error)


def doubt(view: View, component: str, most_error: float) -> str:
    """Why the model is not relied upon here, and whose limit that is; empty if it is."""
    if not doubted(view, component, most_error):
        return ""
    whose = "largest_error" if view.objective.model_error is None else "the objective"
    off, allowed = math.expm1(view.trust[component].error), math.expm1(_allowed(view, most_error))
    return f"predictions were off by {off:.0%} here, {whose} allows {allowed:.0%}"


def _allowed(view: View, most_error: float) -> float:
    return most_error if view.objective.model_error is None else view.objective.model_error
