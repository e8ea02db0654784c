"""Settings for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# Machines differ in speed, so no example has a deadline. `make test` draws the same examples every time and stays as it
# is from one run to the next; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
