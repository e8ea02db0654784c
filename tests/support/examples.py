"""How many examples a property test tries whose examples take long."""

from __future__ import annotations

from hypothesis import settings


def tenth_of_examples() -> settings:
    """A tenth of those of the profile: `make soak` still tries many."""
    default = settings.default
    assert default is not None
    return settings(max_examples=max(2, default.max_examples // 10))
