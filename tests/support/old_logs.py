"""A log as it is after days of batches every two minutes, with a few decisions."""

from __future__ import annotations

from homeostat.core.records import (
    ActionContent,
    AlertContent,
    BatchContent,
    DiagnosisContent,
    OrderContent,
    OutcomeContent,
    ProposalContent,
    ReceiptContent,
    Record,
    RejectionContent,
    SymptomContent,
)
from homeostat.store.protocol import Store

RUN = "shop/clicks"
DAY_S = 86_400.0
BATCH_S = 120.0
# A simulated clock: what it says has nothing to do with today.
START_S = 100 * DAY_S


def batch(number: int, at_s: float) -> Record:
    content = BatchContent(
        rows=300.0 + number % 7,
        seconds=5.0 + number % 3,
        trigger_s=BATCH_S,
        arrival_per_s=10.0 + number % 5,
        pending_rows=float(number % 11),
        span_s=BATCH_S,
        batch=number,
        executors=2,
        workers=2,
        phases_s={"addBatch": 4.0 + number % 2},
        arrivals_per_s={"a": 4.0, "b": 6.0 + number % 5},
    )
    return Record.of(f"b-{number}", at_s, content, f"batch {number}")


def batches(days: float, start_s: float = START_S) -> list[Record]:
    return [batch(number, start_s + (number + 1) * BATCH_S) for number in range(int(days * DAY_S / BATCH_S))]


def decision(name: str, at_s: float) -> list[Record]:
    """A whole story, and what led to nothing: a symptom of its own, and a rejected proposal."""
    return [
        Record.of(f"s-{name}", at_s, SymptomContent(symptom="pressure"), "pressure"),
        Record.of(f"d-{name}", at_s, DiagnosisContent(cause="under-provisioned"), "too few", because=(f"s-{name}",)),
        Record.of(f"p-{name}", at_s, ProposalContent("scale-up"), "more", because=(f"d-{name}",)),
        Record.of(f"a-{name}", at_s, ActionContent("scale-up"), "grows", because=(f"p-{name}",)),
        Record.of(f"c-{name}", at_s + 1, ReceiptContent(f"a-{name}", True), "grew", because=(f"a-{name}",)),
        Record.of(f"o-{name}", at_s + 2, OutcomeContent(f"a-{name}", "helped"), "helped", because=(f"a-{name}",)),
        Record.of(f"alone-{name}", at_s, SymptomContent(symptom="idle"), "idle"),
        Record.of(f"q-{name}", at_s, ProposalContent("scale-down"), "fewer", because=(f"alone-{name}",)),
        Record.of(f"r-{name}", at_s, RejectionContent("not yet"), "rejected", because=(f"q-{name}",)),
        Record.of(f"w-{name}", at_s, OrderContent("pause", "ann"), "ann asks: pause"),
        Record.of(f"l-{name}", at_s, RejectionContent("too late"), "too late", because=(f"w-{name}",)),
        Record.of(f"n-{name}", at_s, AlertContent("external-bound"), "look"),
    ]


def write_old_log(store: Store, days: float, start_s: float = START_S) -> list[Record]:
    records = batches(days, start_s)
    store.append(RUN, records)
    return records
