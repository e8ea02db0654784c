"""Times, numbers and quantities as people read them."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import pytest

from homeostat.core.wording import knob_value, moment, number, one_line, quantity, settings, span, whole, words


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("at_s", "text"),
    [
        (0.0, "t+0 s"),
        (0.54, "t+0.5 s"),
        (59.96, "t+1 min 00 s"),
        (130.0, "t+2 min 10 s"),
        (3_605.5, "t+1 h 00 min 05.5 s"),
        (86_400.0 * 20 + 61, "t+20 d 00 h 01 min 01 s"),
        (-5.0, "t-5 s"),
        (1_700_000_000.0, "2023-11-14 23:13:20"),
        (1e300, None),
    ],
)
def test_times_are_shown_since_the_start_or_as_the_local_clock(at_s: float, text: str | None) -> None:
    assert text is None or moment(at_s) == text
    assert moment(at_s)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (8, "8"),
        (12_345, "12,345"),
        (12_345.0, "12,300"),
        (0.000012345, "1.23e-05"),
        (0.5, "0.5"),
        (0.0, "0"),
        (9.999, "10"),
        (-0.25, "-0.25"),
        (1e20, "1e+20"),
        (math.nan, "unknown"),
        (-math.inf, "-infinite"),
    ],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_names_give_values_their_unit() -> None:
    assert quantity("delay_s", 2.5) == "delay 2.5 s"
    assert quantity("state_bytes", 10) == "state 10 bytes"
    assert quantity("parallelism.word_count", 3) == "parallelism.word_count 3"
    assert quantity("since_s", "noon") == "since s noon"
    assert quantity("pending_rows", 10**400).endswith(" rows")
    assert quantity("parts", {"a": 1, "b": [True, None]}) == "parts (a 1, b yes, unknown)"


def test_a_span_that_can_only_be_garbage_is_not_split_into_days() -> None:
    assert (span(90_061.0), span(1e13)) == ("1 d 01 h 01 min 01 s", "10,000,000,000,000 s")


def test_a_terminal_gets_no_control_characters() -> None:
    assert one_line("a\x1b[31m\nb") == "a [31m b"


def test_deep_values_end() -> None:
    assert words([[[1]]], levels=2) == "…"


def test_settings_show_the_value_before_and_after() -> None:
    lines = settings({"values": {"executors.app": 8}, "retire": ["exec-1"]}, {"executors.app": 2})

    assert lines == ["executors.app 2 → 8", "replace exec-1"]
    assert settings({"executors.app": 8}, {}) == ["executors.app → 8"]


def test_a_setting_is_never_rounded() -> None:
    assert (knob_value(12_345.0), knob_value(0.12345), whole(2.6)) == ("12,345", "0.12345", "3")
