"""Errors that users see as one line."""

from __future__ import annotations

from homeostat.core.errors import ConfigError, HomeostatError, NoLogError, StoreError


def test_a_line_says_where_what_and_how_to_fix_it() -> None:
    error = ConfigError("no such knob", where="homeostat.toml", fix="see `homeostat config`")

    assert str(error) == error.line == "homeostat.toml: no such knob (see `homeostat config`)"
    assert HomeostatError("plain").line == "plain"


def test_bad_usage_has_an_exit_code_of_its_own() -> None:
    assert [kind("x").exit_code for kind in (HomeostatError, StoreError, ConfigError, NoLogError)] == [1, 1, 2, 2]
