"""The log in words: what a user reads from `homeostat explain` and `homeostat log`."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.errors import HomeostatError
from homeostat.core.record_json import JSON
from homeostat.core.records import KINDS, Record
from homeostat.store.explain import LogLine, explain, log_lines
from homeostat.store.in_memory import MemoryStore
from homeostat.store.sqlite import SqliteStore
from homeostat.testing.store_contract import record_strategy
from support.paths import DOCS as PAGES

DOCS = PAGES / "reference" / "log.md"
AT_S = 3_730.0


def record(id: str, kind: str, body: dict[str, JSON], *because: str, at_s: float = AT_S, text: str = "") -> Record:
    return Record(id, kind, at_s, text, "count", because, body)


def healing() -> list[Record]:
    """A pressured component is scaled up, as the loop writes it down."""
    evidence: JSON = {"arrival_per_s": 2e3, "capacity_per_s": 501.234, "pending_rows": 120_000, "gc_s": math.nan}
    pressure: dict[str, JSON] = {"symptom": "pressure", "severity": 0.75, "evidence": evidence}
    cause: dict[str, JSON] = {"cause": "under-provisioned", "probability": 0.92, "evidence": {"spread": 0.0312}}
    grow: dict[str, JSON] = {
        "kind": "scale-up",
        "patch": {"parallelism.count": 8},
        "prediction": {"gain": math.log(4), "text": "four times the capacity"},
    }
    spread: dict[str, JSON] = {"kind": "adjust-skew", "patch": {"spread.count": 1.5}, "benefit": 0.05, "cost": 0.1}
    intent: dict[str, JSON] = {
        "from": {"parallelism.count": 2},
        "desired": {"parallelism.count": 8, "parallelism.split": 3},
        "steps": ["set parallelism.count = 8"],
    }
    gains: dict[str, JSON] = {"observed_gain": 1.2142, "predicted_gain": math.log(4), "standard_error": 0.0812}
    gains["model_error"] = 0.0953
    judged: dict[str, JSON] = {"action": "a-1", "verdict": "helped", "before": 20, "after": 12, "reason": ""}
    return [
        record("s-1", "symptom", pressure, text="holds back split"),
        record("d-1", "diagnosis", cause, "s-1"),
        record("d-2", "diagnosis", {"cause": "data-skew", "probability": 0.05}, "s-1"),
        record("p-1", "proposal", grow | {"benefit": 0.75, "cost": 0.2}, "d-1"),
        record("p-2", "proposal", spread, "d-2"),
        record("r-1", "rejection", {"reason": "p-1 promises more"}, "p-2"),
        record("a-1", "action", grow | intent, "p-1", text="count grows from 2 to 8"),
        receipt(12.5, applied=True, detail="8 instances run"),
        record("o-1", "outcome", judged | gains, "a-1", at_s=AT_S + 300),
    ]


def receipt(after_s: float, *, applied: bool, detail: str) -> Record:
    body: dict[str, JSON] = {"action": "a-1", "applied": applied, "detail": detail}
    return record("c-1", "receipt", body, "a-1", at_s=AT_S + after_s)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.append("demo", healing())
    return store


def section(text: str, heading: str) -> str:
    (block,) = [block for block in text.split("\n\n") if block.startswith(heading)]
    return block


def test_an_action_is_reported_from_measurement_to_outcome(store: MemoryStore) -> None:
    text = explain(store, "demo", "a-1")
    assert text.startswith("a-1 · action · count · t+1 h 02 min 10 s\ncount grows from 2 to 8\n")
    assert [block.split("\n")[0] for block in text.split("\n\n")[1:]] == [
        "What was observed",
        "What was diagnosed",
        "What was proposed",
        "What was done",
        "What was predicted",
        "What came of it",
    ]
    observation = section(text, "What was observed")
    assert "t+1 h 02 min 10 s  holds back split\n      pressure, severity 0.75\n" in observation
    assert observation.count("arrival 2,000 /s") == 1, "the evidence is told once"
    assert "arrival 2,000 /s · capacity 501 /s · pending 120,000 rows · gc unknown" in observation
    diagnosed = section(text, "What was diagnosed")
    assert "under-provisioned, probability 0.92" in diagnosed.split("also considered")[0]
    assert "spread 0.0312" in diagnosed
    assert "data-skew, probability 0.05" in diagnosed.split("also considered")[1]
    assert "more workers would not help" in diagnosed.split("also considered")[1]
    proposed = section(text, "What was proposed")
    assert "p-1" in proposed
    assert "benefit 0.75 · cost 0.2\n      carried out as a-1" in proposed
    assert "adjust-skew: spread.count → 1.5" in proposed
    assert "rejected (r-1): p-1 promises more" in proposed
    done = section(text, "What was done")
    assert "parallelism.count 2 → 8\n      step 1 of 1: set parallelism.count = 8" in done
    assert "took effect after 12.5 s (c-1): 8 instances run" in done
    assert "gain 1.39: batch time × 0.25 at equal load · four times the capacity" in text
    outcome = section(text, "What came of it")
    assert "t+1 h 07 min 10 s  a-1 helped" in outcome
    assert "observed gain 1.21 ± 0.0812, 1.39 predicted (88% of it)" in outcome
    assert "past predictions about it were off by 10%" in outcome
    assert "judged by 20 measurements before it and 12 after" in outcome


def test_both_stores_tell_the_same_story(store: MemoryStore, tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "log.sqlite")) as file:
        file.append("demo", healing())
        for each in healing():
            assert explain(file, "demo", each.id) == explain(store, "demo", each.id)


def test_an_action_that_a_crash_cut_short_says_what_is_not_known() -> None:
    store = MemoryStore()
    store.append("demo", healing()[:7])
    text = explain(store, "demo", "a-1")
    assert "no receipt so far, so its effect is not known" in text
    assert "not judged so far: a-1" in text


def test_an_action_that_had_no_effect_says_so() -> None:
    store = MemoryStore()
    late = receipt(90, applied=False, detail="only 3 of 8 came")
    store.append("demo", [*healing()[:7], late])
    assert "had no effect after 1 min 30 s (c-1): only 3 of 8 came" in explain(store, "demo", "a-1")


def test_a_rejected_proposal_is_reported_without_the_action_taken_instead(store: MemoryStore) -> None:
    text = explain(store, "demo", "r-1")
    assert text.startswith("r-1 · rejection · count · t+1 h 02 min 10 s\np-1 promises more")
    assert "data-skew, probability 0.05" in section(text, "What was diagnosed").split("also considered")[0]
    assert "What was done" not in text
    assert "What came of it" not in text


@pytest.mark.parametrize(("count", "id"), [(1, "s-1"), (2, "d-1")])
def test_a_chain_that_stopped_says_where(count: int, id: str) -> None:
    store = MemoryStore()
    store.append("demo", healing()[:count])
    assert explain(store, "demo", id).endswith("nothing so far")


def test_advice_alerts_and_kinds_of_ones_own_are_reported_too() -> None:
    store = MemoryStore()
    store.append(
        "demo",
        [
            *healing()[:4],
            record("v-1", "advice", {}, "p-1", text="mode is advise"),
            record("n-1", "alert", {"to": "on-call"}, "d-1", text="count needs help"),
            record("z-1", "note", {"rows_seen": 3}, "n-1"),
        ],
    )
    text = explain(store, "demo", "d-1")
    assert "advised (v-1): mode is advise" in section(text, "What was proposed")
    others = section(text, "Related records")
    assert "count needs help\n      to on-call" in others
    assert "rows seen 3" in others
    assert "v-1" not in others


def test_what_was_thought_of_the_same_symptom_later_is_no_alternative(store: MemoryStore) -> None:
    store.append("demo", [record("d-3", "diagnosis", {"cause": "slow-instance"}, "s-1", at_s=AT_S + 60)])
    assert "slow-instance" not in explain(store, "demo", "a-1")
    assert "slow-instance" in explain(store, "demo", "s-1")


def test_a_revert_is_reported_with_what_it_reverts(store: MemoryStore) -> None:
    back: dict[str, JSON] = {"kind": "revert", "steps": ["back to 2"]}
    store.append("demo", [record("a-2", "action", back, "o-1", at_s=AT_S + 301)])
    done = section(explain(store, "demo", "a-2"), "What was done")
    assert done.index("a-1") < done.index("a-2")
    assert "step 1 of 1: back to 2" in done


def test_replacements_and_patches_are_spelled_out() -> None:
    store = MemoryStore()
    body: dict[str, JSON] = {
        "kind": "replace",
        "from": {"executors.app": 3},
        "patch": {"executors.app": 4.0},
        "retire": ["w-1", "w-2"],
        "steps": ["replace w-1, w-2", "restart with executors.app = 4"],
    }
    store.append("demo", [Record("a-1", "action", 1.0, "", body=body)])
    text = explain(store, "demo", "a-1")
    assert "replace: executors.app 3 → 4, replace w-1, w-2" in text
    assert "step 2 of 2: restart with executors.app = 4" in text


def test_a_long_chain_is_cut_short() -> None:
    store = MemoryStore()
    store.append("demo", healing()[:1])
    store.append("demo", [record(f"d-{n}", "diagnosis", {"cause": "inconclusive"}, "s-1") for n in range(50)])
    text = explain(store, "demo", "s-1")
    assert text.count("inconclusive") == 20
    assert "… and 30 more" in text


def test_an_unknown_id_or_run_is_an_error_with_the_nearest(store: MemoryStore) -> None:
    with pytest.raises(HomeostatError, match=r"run 'demo' has no record 'a-11' \(nearest: a-1"):
        explain(store, "demo", "a-11")
    with pytest.raises(HomeostatError, match=r"run 'demo' has no record 'xyz' \(the newest is o-1\)"):
        explain(store, "demo", "xyz")
    with pytest.raises(HomeostatError, match=r"the log has no run 'dem' \(runs: demo\)"):
        explain(store, "dem", "a-1")
    with pytest.raises(HomeostatError, match="empty"):
        explain(MemoryStore(), "demo", "a-1")


def test_the_log_has_a_row_for_each_record(store: MemoryStore) -> None:
    rows = log_lines(store.records("demo"))
    assert rows[0] == LogLine("t+1 h 02 min 10 s", "s-1", "symptom", "count", "holds back split")
    assert [row.text for row in rows[1:7]] == [
        "under-provisioned, probability 0.92",
        "data-skew, probability 0.05",
        "scale-up: parallelism.count → 8",
        "adjust-skew: spread.count → 1.5",
        "p-1 promises more",
        "count grows from 2 to 8",
    ]


def test_no_text_of_others_reaches_the_terminal_as_a_command() -> None:
    nasty = Record("f-\x1b[2J", "failure", 1.0, "boom\n\x1b[31mred", "x\ry", body={"k\x07": "v\x1b"})
    store = MemoryStore()
    store.append("demo", [nasty])
    lines = [*log_lines([nasty])[0], *explain(store, "demo", nasty.id).split("\n")]
    assert all(text.isprintable() for text in lines)


@settings(deadline=None)
@given(st.lists(record_strategy(ids=st.sampled_from([f"x-{n}" for n in range(8)])), min_size=1, max_size=8))
def test_any_records_can_be_described(records: list[Record]) -> None:
    store = MemoryStore()
    store.append("demo", records)
    assert len(log_lines(records)) == len(records)
    for each in records:
        assert explain(store, "demo", each.id).startswith(each.id)


def test_the_page_on_the_log_shows_every_kind_and_what_explain_really_says(store: MemoryStore) -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"\n| `{kind}` |" not in page] == []
    assert f"```text\n{explain(store, 'demo', 'a-1')}\n```" in page


def test_the_question_on_the_page_can_be_asked_of_the_file(tmp_path: Path) -> None:
    question = DOCS.read_text(encoding="utf-8").split("```sql\n")[1].split("```")[0]
    with closing(SqliteStore(tmp_path / "log.sqlite")) as file:
        file.append("demo", healing())
        with closing(sqlite3.connect(file.path)) as client:
            assert client.execute(question).fetchall() == [(AT_S, "a-1", "count grows from 2 to 8")]
