"""The release of Spark, which decides what it can do."""

from __future__ import annotations

import re


def release(version: str) -> tuple[int, ...]:
    """
    >>> release("4.3.0"), release("4.0.0-preview2") < (4, 2)
    ((4, 3), True)
    """
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
