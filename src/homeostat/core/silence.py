"""When nothing is heard any more, or a batch does not end: that is not health either."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.effects import Book
from homeostat.core.events import Command
from homeostat.core.findings import EXTERNAL, INCONCLUSIVE, UNKNOWN
from homeostat.core.loop_state import State

_LEAST_S = 60.0
_SPANS = 3.0
_BATCHES = 10.0
STUCK_BATCH = "stuck-batch"


def notice(state: State, book: Book, commands: list[Command]) -> State:
    """An engine that has sent no observation for several of its usual intervals is unknown, and a person is told.

    A batch that is seen running is no silence, unless it runs ten times as long as the last one took.
    """
    if not state.history:
        return state
    last = state.history[-1]
    quiet_s = book.now_s - last.at_s
    usual_s = max(_LEAST_S, _SPANS * last.span_s)
    running = state.under_way
    seen_lately = running is not None and book.now_s - running.at_s < usual_s
    if running is not None and seen_lately:
        silent = book.now_s - running.since_s > max(_LEAST_S, _BATCHES * last.span_s)
    else:
        silent = quiet_s > usual_s
    if silent and not state.silent:
        _tell(state, book, commands, quiet_s, stuck=seen_lately)
    elif state.silent and not silent:
        book.write("symptom", "observations arrive again", id=book.next_id("e"), body={"over": True})
    return replace(state, silent=silent)


def _tell(state: State, book: Book, commands: list[Command], quiet_s: float, stuck: bool) -> None:
    running = state.under_way
    if stuck and running is not None:
        symptom, cause, component = STUCK_BATCH, EXTERNAL, running.component
        where = f" in {component}" if component else ""
        text = f"batch {running.batch} has been running for {book.now_s - running.since_s:.0f} s{where}"
        text += f", {running.tasks_done} of {running.tasks} tasks done" if running.tasks else ""
        why = f"{cause}: it waits for something outside, its sink or a service it calls"
        advice = f"{text[0].upper()}{text[1:]}. What to do: look at the sink or service it waits for."
    else:
        symptom, cause, component = UNKNOWN, INCONCLUSIVE, ""
        text = f"unknown: no observation for {quiet_s:.0f} s"
        why = f"{cause}: the application hangs, or its metrics do not arrive"
        advice = (
            f"No observation for {quiet_s:.0f} s. What to do: look whether a batch hangs (its sink, say) or a sensor."
        )
    seen = book.write(
        "symptom", text, id=book.next_id("s"), component=component, body={"symptom": symptom, "quiet_s": quiet_s}
    )
    named = book.write(
        "diagnosis",
        why,
        id=book.next_id("d"),
        component=component,
        because=[seen],
        body={"cause": cause, "probability": 1.0 if cause == INCONCLUSIVE else 0.8},
    )
    commands.append(book.alert(cause, component, advice, [named]))
