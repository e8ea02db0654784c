"""Prepares texts from the log and from errors for a page."""

from __future__ import annotations

from homeostat.core.wording import one_line

LONGEST_TEXT = 300


def clip(text: object, longest: int = LONGEST_TEXT) -> str:
    """The text on one line, without control characters, and cut where it is too long."""
    line = one_line(str(text)[: 4 * longest])
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def as_sentence(text: str) -> str:
    """With a capital letter and a full stop. Ids and names of knobs at the start stay as they are.

    >>> as_sentence("no batch has ended yet"), as_sentence("a-1 is being judged"), as_sentence("executors.app is 3")
    ('No batch has ended yet.', 'a-1 is being judged.', 'executors.app is 3.')
    """
    first = text.split(" ", 1)[0]
    start = text[:1].upper() + text[1:] if first.strip(",:;").replace("-", "").isalpha() else text
    return start if start.endswith((".", "!", "?", "…")) else f"{start}."
