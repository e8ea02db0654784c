"""The contract of stores, as checks that you can run on any implementation."""

from __future__ import annotations

import math
import multiprocessing
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import count
from multiprocessing.connection import Connection
from time import perf_counter
from typing import TYPE_CHECKING

from homeostat.core.errors import StoreError
from homeostat.core.record_json import JSON
from homeostat.core.records import KINDS, OutcomeContent, ReceiptContent, Record, SymptomContent
from homeostat.store.in_memory import MemoryStore
from homeostat.store.protocol import SET_ASIDE, RunInfo, Store

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

StoreFactory = Callable[[], Store]

_BATCH_RECORDS = 300


def check_order_and_filters(factory: StoreFactory) -> None:
    """Records are ordered by time, then by insertion. Filters narrow them, and `newest_first` turns the order round."""
    late = Record("s-3", "symptom", 30.0, "late", component="count")
    first = Record("s-1", "symptom", 10.0, "first", component="split")
    second = Record("d-1", "diagnosis", 10.0, "second", component="split", because=("s-1",))
    middle = Record("a-1", "action", 20.0, "middle", component="split")
    with closing(factory()) as store:
        store.append("run", [late, first, second])
        store.append("run", [middle])
        assert store.records("run") == [first, second, middle, late]
        assert store.records("run", newest_first=True) == [late, middle, second, first]
        assert store.records("run", newest_first=True, limit=2) == [late, middle]
        assert store.records("run", limit=1) == [first]
        assert store.records("run", kinds=("symptom",)) == [first, late]
        assert store.records("run", kinds=("action", "symptom", "action"), limit=2) == [first, middle]
        assert store.records("run", component="split", kinds=("symptom", "action")) == [first, middle]
        assert store.records("run", since_s=20.0) == [middle, late], "since_s includes its own moment"
        assert store.records("run", kinds=("receipt",)) == []
        assert store.ids("run", ("symptom", "action")) == ["s-1", "a-1", "s-3"]
        assert store.ids("run", ()) == store.ids("nowhere", ("symptom",)) == []


def check_runs_apart(factory: StoreFactory) -> None:
    """The same id in two runs means two records. Each run is listed with its times and counts."""
    with closing(factory()) as store:
        assert store.runs() == []
        store.save_state("only state", "mode", "observe")
        store.append("b", [Record("x-1", "symptom", 5.0, "of b"), Record("x-2", "action", 9.0, "of b")])
        store.append("a", [Record("x-1", "alert", 1.0, "of a")])
        store.append("b", [Record("x-3", "symptom", 2.0, "of b"), Record("x-1", "alert", 99.0, "again")])
        store.append("c", [])
        assert store.get("a", "x-1") == Record("x-1", "alert", 1.0, "of a")
        assert store.get("b", "x-1") == Record("x-1", "symptom", 5.0, "of b")
        assert store.get("a", "x-2") is None
        assert store.get("nowhere", "x-1") is None
        assert store.records("nowhere") == []
        assert store.runs() == [
            RunInfo("b", 2.0, 9.0, {"action": 1, "symptom": 2}),
            RunInfo("a", 1.0, 1.0, {"alert": 1}),
        ]


def check_following(factory: StoreFactory) -> None:
    """Every record of every run has a position, which grows in the order of writing."""
    with closing(factory()) as store:
        assert store.position() == 0
        assert store.after(0, 10) == []
        store.append("b", [Record("x-1", "symptom", 5.0, "first"), Record("x-2", "action", 1.0, "second")])
        before = store.position()
        store.append("a", [Record("x-1", "alert", 3.0, "third")])
        store.append("a", [Record("x-1", "alert", 3.0, "again")])
        all_placed = store.after(0, 10)
        assert [(placed.run, placed.record.text) for placed in all_placed] == [
            ("b", "first"),
            ("b", "second"),
            ("a", "third"),
        ]
        assert [placed.position for placed in all_placed] == sorted({placed.position for placed in all_placed})
        assert store.after(before, 10) == all_placed[2:]
        assert store.after(0, 2) == all_placed[:2]
        assert store.position() == all_placed[-1].position
        assert store.after(store.position(), 10) == []


def check_set_aside(factory: StoreFactory) -> None:
    """A value that is set aside is no longer under its key. Setting aside nothing does nothing."""
    with closing(factory()) as store:
        store.set_aside("run", "loop")
        store.save_state("run", "loop", {"numbers": 1})
        store.save_state("other", "loop", {"numbers": 2})
        store.set_aside("run", "loop")
        store.set_aside("run", "loop")
        assert store.load_state("run", "loop") is None
        assert store.load_state("run", f"loop{SET_ASIDE}") == {"numbers": 1}
        assert store.load_state("other", "loop") == {"numbers": 2}


def check_same_id_once(factory: StoreFactory) -> None:
    """A record with a known id changes nothing, and its links are not stored either."""
    first = Record.of("s-1", 1.0, SymptomContent("pressure", severity=0.5), "first")
    other = Record("s-0", "symptom", 0.0, "other")
    with closing(factory()) as store:
        store.append("run", [other, first, Record("s-1", "alert", 2.0, "in the same call", because=("s-0",))])
        store.append("run", [Record("s-1", "alert", 3.0, "in another", because=("s-0",))])
        assert store.records("run") == [other, first]
        assert store.chain("run", "s-0") == [other]


def check_all_or_none(factory: StoreFactory) -> None:
    """If one record of a call cannot be stored, none of that call is. Earlier records stay."""
    good = Record("s-1", "symptom", 1.0, "good")
    timeless = Record("s-2", "symptom", math.nan, "no time")
    nameless = Record("", "symptom", 1.0, "no id")
    odd: dict[str, JSON] = {"workers": {"w-1"}}  # type: ignore[dict-item]
    shapeless = Record("s-3", "symptom", 1.0, "a set is not JSON", body=odd)
    for bad in (timeless, nameless, shapeless):
        for records in ([good, bad], [bad, good]):
            with closing(factory()) as store:
                store.append("run", [Record("s-0", "symptom", 0.0, "before")])
                _refuses(store, records)
                assert [record.id for record in store.records("run")] == ["s-0"]
                store.append("run", [good])
                assert [record.id for record in store.records("run")] == ["s-0", "s-1"]


def check_chain(factory: StoreFactory) -> None:
    """A chain holds every ancestor and every descendant and nothing else, even if ids form a circle."""
    records = [
        Record("s-1", "symptom", 1.0, ""),
        Record("s-2", "symptom", 1.0, ""),
        Record("d-1", "diagnosis", 2.0, "", because=("s-1", "s-2", "s-lost")),
        Record("p-1", "proposal", 3.0, "", because=("d-1",)),
        Record("p-2", "proposal", 3.0, "", because=("d-1",)),
        Record("a-1", "action", 4.0, "", because=("p-1",)),
        Record("o-1", "outcome", 6.0, "", because=("a-1",)),
        Record("c-1", "receipt", 5.0, "", because=("a-1",)),
        Record("x-1", "alert", 7.0, "", because=("x-2",)),
        Record("x-2", "alert", 8.0, "", because=("x-1",)),
    ]
    with closing(factory()) as store:
        store.append("run", records)
        store.append("other", [Record("a-2", "action", 4.0, "", because=("p-1",))])
        assert _ids(store.chain("run", "a-1")) == ["s-1", "s-2", "d-1", "p-1", "a-1", "c-1", "o-1"]
        assert _ids(store.chain("run", "p-2")) == ["s-1", "s-2", "d-1", "p-2"]
        assert _ids(store.chain("run", "s-2")) == ["s-2", "d-1", "p-1", "p-2", "a-1", "c-1", "o-1"]
        assert _ids(store.chain("run", "x-2")) == ["x-1", "x-2"]
        assert store.chain("run", "nothing") == []
        assert store.chain("run", "s-lost") == [], "an id that was never written has no chain"


def check_intents(factory: StoreFactory) -> None:
    """An action is open until its receipt, and unjudged from an applied receipt until its outcome."""
    actions = [Record(f"a-{n}", "action", float(n), "") for n in (1, 2, 3, 4)]
    with closing(factory()) as store:
        store.append("run", actions)
        assert _ids(store.open_intents("run")) == ["a-1", "a-2", "a-3", "a-4"]
        assert store.unjudged("run") == []
        store.append("run", [_receipt("c-1", "a-1")])
        store.append("run", [_receipt("c-2", "a-2", applied=False)])
        store.append("run", [_receipt("c-3", "a-3")])
        assert _ids(store.open_intents("run")) == ["a-4"]
        assert _ids(store.unjudged("run")) == ["a-1", "a-3"]
        store.append("run", [_outcome("o-1", "a-1")])
        alerts = [replace(_receipt("x-1", "a-3"), kind="alert"), replace(_receipt("x-2", "a-4"), kind="alert")]
        store.append("run", alerts)
        store.append("other", [_outcome("o-3", "a-3"), _receipt("c-4", "a-4")])
        assert _ids(store.open_intents("run")) == ["a-4"], "only a receipt of the same run closes an intent"
        assert _ids(store.unjudged("run")) == ["a-3"], "only an outcome of the same run judges an action"
        assert store.open_intents("nowhere") == store.unjudged("nowhere") == []


def check_state(factory: StoreFactory) -> None:
    """State is stored by run and key. The latest value wins, and the store keeps a copy."""
    with closing(factory()) as store:
        assert store.load_state("run", "memory") is None
        value: JSON = {"blocked": [1, 2.5, None, True], "until_s": math.inf}
        store.save_state("run", "memory", {"old": True})
        store.save_state("run", "memory", value)
        store.save_state("run", "mode", "advise")
        store.save_state("other", "memory", 0)
        assert store.load_state("run", "memory") == value
        assert store.load_state("run", "mode") == "advise"
        assert store.load_state("other", "memory") == 0
        assert store.load_state("other", "mode") is None
        assert isinstance(value, dict)
        value["later"] = True
        assert "later" not in (store.load_state("run", "memory") or {}), "a store keeps a copy"  # type: ignore[operator]


def check_round_trip(factory: StoreFactory) -> None:
    """A record is read back unchanged: any text, deep bodies, NaN, infinities and minus zero."""
    from hypothesis import given, settings
    from hypothesis import strategies as st

    @settings(deadline=None)
    @given(st.lists(record_strategy(), max_size=5, unique_by=lambda record: record.id), json_strategy())
    def round_trip(records: list[Record], state: JSON) -> None:
        with closing(factory()) as store:
            store.append("run", records)
            store.save_state("run", "key", state)
            for record in records:
                assert repr(store.get("run", record.id)) == repr(record)
            assert repr(store.load_state("run", "key")) == repr(state)

    round_trip()


def check_agrees_with_memory(factory: StoreFactory) -> None:
    """After any appends, every query gives the same result as a store in memory."""
    from hypothesis import given, settings
    from hypothesis import strategies as st

    record = record_strategy(ids=st.sampled_from([f"x-{n}" for n in range(8)]))

    @settings(deadline=None)
    @given(st.lists(st.lists(record, max_size=4), max_size=5))
    def agrees(batches: list[list[Record]]) -> None:
        with closing(factory()) as store:
            model = MemoryStore()
            for batch in batches:
                store.append("run", batch)
                model.append("run", batch)
            assert _answers(store) == _answers(model)

    agrees()


STORE_CHECKS: tuple[Callable[[StoreFactory], None], ...] = (
    check_order_and_filters,
    check_runs_apart,
    check_following,
    check_set_aside,
    check_same_id_once,
    check_all_or_none,
    check_chain,
    check_intents,
    check_state,
    check_round_trip,
    check_agrees_with_memory,
)


def check_store(factory: StoreFactory) -> None:
    """Check that a store keeps its contract. `factory` returns a new, empty store each time. Requires hypothesis."""
    for check in STORE_CHECKS:
        check(factory)


def check_survives_kill(open_store: StoreFactory) -> None:
    """Check that a durable store survives a kill: every append that returned is there, and no append is there in part.

    `open_store` opens the same store every time, in this process and, pickled, in another.
    """
    context = multiprocessing.get_context("spawn")
    for share in (0.0, 0.3, 0.5, 0.7):  # how far into an append the writer is killed, roughly
        run = f"killed after {share}"
        receiver, sender = context.Pipe(duplex=False)
        writer = context.Process(target=_write_without_end, args=(open_store, run, sender), daemon=True)
        writer.start()
        sender.close()
        count = 0
        with closing(receiver), suppress(EOFError):
            while True:
                count, append_s = receiver.recv()
                if count == 3:
                    receiver.poll(share * append_s)
                    writer.kill()
        writer.join()
        with closing(open_store()) as store:
            batches = Counter(round(record.at_s) for record in store.records(run))
        assert count >= 3, "the writer ended before it was killed"
        assert set(batches.values()) == {_BATCH_RECORDS}, "an append was stored in part"
        assert set(range(1, count + 1)) <= set(batches), "an append that returned is missing"


def _write_without_end(open_store: StoreFactory, run: str, sender: Connection) -> None:
    store = open_store()
    kinds = ("symptom", "action")  # both an ordinary append and one with an intent
    for batch in count(1):
        began_s = perf_counter()
        records = [Record(f"{batch}/{n}", kinds[batch % 2], float(batch), "x" * 1_000) for n in range(_BATCH_RECORDS)]
        store.append(run, records)
        sender.send((batch, perf_counter() - began_s))


def json_strategy() -> SearchStrategy[JSON]:
    from hypothesis import strategies as st

    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    keys = st.text(max_size=5) | st.just("$float")
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=8,
    )


def record_strategy(ids: SearchStrategy[str] | None = None) -> SearchStrategy[Record]:
    from hypothesis import strategies as st

    some_ids = ids if ids is not None else st.text(min_size=1, max_size=6)
    receipts = st.builds(ReceiptContent, some_ids, st.booleans()).map(ReceiptContent.to_json)
    bodies = st.dictionaries(st.text(max_size=5) | st.just("$float"), json_strategy(), max_size=3)
    return st.builds(
        Record,
        id=some_ids,
        kind=st.sampled_from(KINDS) | st.text(max_size=5),
        at_s=(st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0, 2.0])).map(_time),
        text=st.text(max_size=20),
        component=st.sampled_from(["", "split", "count"]) | st.text(max_size=5),
        because=st.lists(some_ids, max_size=3).map(tuple),
        body=receipts | bodies,
    )


def _time(at_s: float) -> float:
    return at_s + 0.0  # a clock has no minus zero


def _answers(store: Store) -> list[str]:
    """The result of every query, as text, because NaN does not equal itself."""
    filters = [("symptom",), ("action", "receipt"), ("outcome", "symptom", "alert"), ()]
    results = [
        store.records("run", kinds=kinds, component=component, since_s=since_s, limit=limit, newest_first=newest)
        for kinds in filters
        for component in ("", "split")
        for since_s in (-math.inf, 1.0)
        for limit in (0, 2)
        for newest in (False, True)
    ]
    results += [store.chain("run", f"x-{n}") for n in range(8)]
    results += [store.open_intents("run"), store.unjudged("run")]
    return [*map(repr, results), repr(store.runs())]


def _refuses(store: Store, records: Sequence[Record]) -> None:
    try:
        store.append("run", records)
    except StoreError:
        return
    raise AssertionError(f"the store accepted records that it must refuse: {records}")


def _receipt(id: str, action: str, *, applied: bool = True) -> Record:
    return Record.of(id, 10.0, ReceiptContent(action, applied), "", because=(action,))


def _outcome(id: str, action: str) -> Record:
    return Record.of(id, 10.0, OutcomeContent(action, "helped"), "", because=(action,))


def _ids(records: Sequence[Record]) -> list[str]:
    return [record.id for record in records]
