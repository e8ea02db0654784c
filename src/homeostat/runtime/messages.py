"""Lines for the person who runs the application, from the driver's process."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    print(f"homeostat: {text}", file=sys.stderr, flush=True)
