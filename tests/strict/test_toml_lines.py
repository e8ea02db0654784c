"""Every key of a TOML document has its line."""

from __future__ import annotations

from homeostat.strict.toml_lines import key_lines

TEXT = """title = "t"
[guards]
cooldown = "1 s"
[[fault]]
kind = "crash"
[[fault]]
kind = "stuck"
steps = [
  { at = 1 },
  { at = 2 },
]
"""


def test_tables_keys_and_elements_have_their_lines() -> None:
    lines = key_lines(TEXT)
    assert (lines[("title",)], lines[("guards",)], lines[("guards", "cooldown")]) == (1, 2, 3)
    assert (lines[("fault", 0, "kind")], lines[("fault", 1, "kind")]) == (5, 7)
    assert lines[("fault", 1, "steps", 1, "at")] == 10


def test_windows_line_ends_do_not_change_the_lines() -> None:
    assert key_lines(TEXT.replace("\n", "\r\n")) == key_lines(TEXT)
