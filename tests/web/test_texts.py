"""Texts from the log and from errors, made fit for a page."""

from __future__ import annotations

import pytest

from homeostat.web.texts import as_sentence, clip


def test_long_texts_are_cut_and_control_characters_removed() -> None:
    assert clip("x" * 400, 10) == "x" * 9 + "…"
    assert clip("two\nlines\x1b[31m") == "two lines [31m"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no news for 3 h", "No news for 3 h."),
        ("a-1 is being judged", "a-1 is being judged."),
        ("executors.app = 3", "executors.app = 3."),
        ("scale-up: waits", "Scale-up: waits."),
        ("Done.", "Done."),
    ],
)
def test_a_sentence_begins_with_a_capital_letter_and_ends_with_a_stop(text: str, sentence: str) -> None:
    assert as_sentence(text) == sentence
