"""When nothing is heard any more: that is not health either."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.book import Book
from homeostat.core.events import Command, Notify
from homeostat.core.findings import INCONCLUSIVE
from homeostat.core.state import State

_LEAST_S = 60.0
_SPANS = 3.0


def notice(state: State, book: Book, commands: list[Command]) -> State:
    """An engine that has sent no observation for several of its usual intervals is unknown, and a person is told."""
    if not state.history:
        return state
    last = state.history[-1]
    quiet_s = book.now_s - last.at_s
    silent = quiet_s > max(_LEAST_S, _SPANS * last.span_s)
    if silent and not state.silent:
        text = f"unknown: no observation for {quiet_s:.0f} s"
        seen = book.write("symptom", text, id=book.next_id("s"), body={"symptom": "unknown", "quiet_s": quiet_s})
        cause = f"{INCONCLUSIVE}: the application hangs, or its metrics do not arrive"
        named = book.write(
            "diagnosis", cause, id=book.next_id("d"), because=[seen], body={"cause": INCONCLUSIVE, "probability": 1.0}
        )
        message = (
            f"No observation for {quiet_s:.0f} s. What to do: look whether a batch hangs (its sink, say) or a sensor."
        )
        alert = book.write("alert", message, id=book.next_id("n"), because=[named], body={"cause": INCONCLUSIVE})
        commands.append(Notify(alert, book.now_s, INCONCLUSIVE, "", message, (named,)))
    elif state.silent and not silent:
        book.write("symptom", "observations arrive again", id=book.next_id("e"), body={"over": True})
    return replace(state, silent=silent)
