"""Every kind of record survives the log: written, read back, and read from logs of the version before."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.change_parts import PredictionContent
from homeostat.core.records import (
    CONTENTS,
    SCHEMA_VERSION,
    ActionContent,
    BatchContent,
    Content,
    OtherContent,
    OutcomeContent,
    ReceiptContent,
    Record,
    SymptomContent,
    content_of,
    with_content,
)
from homeostat.store.codec import dump, load_body

NUMBERS = st.sampled_from([math.nan, math.inf, -math.inf]) | st.floats()
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=8),
    bool: st.booleans(),
    float: NUMBERS,
    int: st.integers(-(10**12), 10**12),
    int | float: st.integers(0, 10**6) | NUMBERS,
}
FIGURE = st.text(max_size=4) | st.integers(0, 9) | NUMBERS
FIGURES = FIGURE | st.lists(FIGURE, max_size=2) | st.dictionaries(st.text(max_size=3), FIGURE, max_size=2)


def values(hint: Any) -> st.SearchStrategy[Any]:
    if hint in SCALARS:
        return SCALARS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple and dataclasses.is_dataclass(arguments[0]):
        return st.lists(filled(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.lists(SCALARS[arguments[0]].filter(lambda each: each == each), max_size=3).map(tuple)
    if type(None) in arguments:
        return st.none() | st.builds(PredictionContent, NUMBERS, st.just(("count",)), st.text(max_size=5))
    item = SCALARS.get(arguments[1], FIGURES)
    return st.dictionaries(st.text(min_size=1, max_size=5), item, max_size=3)


@st.composite
def contents(draw: st.DrawFn) -> Content:
    cls = draw(st.sampled_from(sorted(CONTENTS.values(), key=lambda each: each.KIND)))
    content: Content = draw(filled(cls))
    return content


def filled(cls: Any) -> st.SearchStrategy[Any]:
    """Any value in any field, and often the default, which is not written."""
    hints = get_type_hints(cls)
    fields = {}
    for each in dataclasses.fields(cls):
        if each.name != "extra":
            default = () if each.default is dataclasses.MISSING else (st.just(each.default),)
            fields[each.name] = st.one_of(*default, values(hints[each.name]))
    return st.builds(cls, **fields)


@given(contents())
def test_any_content_survives_the_round_trip(content: Content) -> None:
    again = content_of(content.kind, load_body(dump(content.to_json())))
    # NaN is unknown, and equals nothing: the texts are compared.
    assert repr(again) == repr(content)


@pytest.mark.parametrize("kind", sorted(CONTENTS))
def test_every_kind_says_its_schema_version(kind: str) -> None:
    content = content_of(kind, {})
    assert (content.kind, content.to_json()["v"]) == (kind, SCHEMA_VERSION)


def test_keys_of_a_later_version_are_kept() -> None:
    content = content_of("receipt", {"action": "a-1", "applied": True, "took_s": 3})
    assert isinstance(content, ReceiptContent)
    assert (content.action, content.applied, dict(content.extra)) == ("a-1", True, {"took_s": 3})
    assert content.to_json()["took_s"] == 3


def test_a_kind_of_a_later_version_is_kept_whole() -> None:
    content = content_of("premonition", {"of": "rain"})
    assert isinstance(content, OtherContent)
    assert (content.kind, content.to_json()) == ("premonition", {"of": "rain"})


@pytest.mark.parametrize("odd", [None, "text", 5, [1], {"a": 1}, True, math.nan, math.inf, 10**400])
@pytest.mark.parametrize("kind", sorted(CONTENTS))
def test_whatever_a_field_holds_reading_does_not_fail(kind: str, odd: Any) -> None:
    keys = {**content_of(kind, {}).to_json(), "evidence": 0, "patch": 0, "prediction": 0, "values": 0, "phases_s": 0}
    content = content_of(kind, dict.fromkeys(keys, odd))
    assert content.kind == kind


def test_a_log_of_the_version_before_can_be_read() -> None:
    """Bodies as version 0.1.0 wrote them: without a version, and with tags for numbers that JSON lacks."""
    symptom = content_of("symptom", {"symptom": "pressure", "severity": 0.4, "evidence": {"offered": 1624.0}})
    assert isinstance(symptom, SymptomContent)
    assert (symptom.symptom, symptom.severity, dict(symptom.figures)) == ("pressure", 0.4, {"offered": 1624.0})
    ended = content_of("symptom", {"over": True})
    assert isinstance(ended, SymptomContent)
    assert ended.over
    action = content_of(
        "action",
        {
            "kind": "scale-up",
            "cause": "under-provisioned",
            "patch": {"executors.app": 4},
            "retire": [],
            "from": {"executors.app": 2},
            "desired": {"executors.app": 4},
            "retired": ["7"],
            "steps": ["set executors.app = 4"],
            "time_limit_s": 105.0,
            "prediction": {"gain": 0.69, "touched": ["scan"], "text": "twice as fast"},
        },
    )
    assert isinstance(action, ActionContent)
    assert (action.action_kind, action.grows, action.time_limit_s) == ("scale-up", True, 105.0)
    assert action.prediction == PredictionContent(0.69, ("scan",), "twice as fast")
    assert action.desired_configuration.retired == {"7"}
    outcome = content_of("outcome", load_body('{"action":"a-1","observed_gain":{"$float":"nan"},"model_error":null}'))
    assert isinstance(outcome, OutcomeContent)
    assert math.isnan(outcome.observed_gain)
    assert math.isnan(outcome.model_error)
    batch = content_of("batch", {"rows": 10.0, "seconds": None, "batch": 3, "workers": 2, "phases_s": {"addBatch": 1}})
    assert isinstance(batch, BatchContent)
    assert (batch.rows, math.isnan(batch.seconds), batch.workers, batch.phases_s["addBatch"]) == (10.0, True, 2, 1.0)


def test_records_are_read_by_the_type_of_their_content() -> None:
    receipt = Record.of("c-1", 5.0, ReceiptContent("a-1", applied=True), "a-1 took effect", because=("a-1",))
    other = Record.of("u-1", 9.0, OutcomeContent("a-1", "helped"), "a-1 helped")
    assert receipt.kind == "receipt"
    assert [(record.id, content.applied) for record, content in with_content([receipt, other], ReceiptContent)] == [
        ("c-1", True)
    ]
    assert receipt.content_as(OutcomeContent) is None
