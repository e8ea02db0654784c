"""Decides whether predictions were good enough for models to choose the sizes.

The objective says how far predictions may be off. If it does not, a setting does.
"""

from __future__ import annotations

import math

from homeostat.core.view import View


def is_doubted(view: View, component: str, most_error: float) -> bool:
    """Whether past predictions about the component were too far off. `most_error` is the setting."""
    trust = view.trust.get(component)
    return trust is not None and trust.error > _allowed_error(view, most_error)


def doubt(view: View, component: str, most_error: float) -> str:
    """Why the model is not used for the component, and which limit applies. Empty if the model is used."""
    if not is_doubted(view, component, most_error):
        return ""
    limit = "largest_error" if view.objective.model_error is None else "the objective"
    off, allowed_error = math.expm1(view.trust[component].error), math.expm1(_allowed_error(view, most_error))
    return f"past predictions for it were off by {off:.0%}, and {limit} allows {allowed_error:.0%}"


def _allowed_error(view: View, most_error: float) -> float:
    return most_error if view.objective.model_error is None else view.objective.model_error
