"""A file is either read as it was meant or refused with its line, the reason and a way out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, model_validator

from homeostat.core.errors import ConfigError
from homeostat.strict import toml_reading
from homeostat.strict.toml_lines import KeyPath, key_lines


class Guards(toml_reading.Table):
    cooldown_s: toml_reading.PositiveDuration = Field(default=180.0, alias="cooldown")
    largest_change: Annotated[int, Field(ge=1)] = 5
    enabled: bool = True


class Dog(toml_reading.Table):
    kind: Literal["dog"]
    tricks: list[str] = Field(default_factory=list)


class Cat(toml_reading.Table):
    kind: Literal["cat"]
    lives: int = 9


class Settings(toml_reading.Table):
    mode: Literal["observe", "advise", "regulate"] = "advise"
    rate: toml_reading.PositiveRate
    share: toml_reading.Share = 0.5
    guards: Guards = Guards()
    pet: list[Annotated[Dog | Cat, Field(discriminator="kind")]] = Field(default_factory=list)
    free: dict[str, dict[str, object]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def shares_suit_the_mode(self) -> Settings:
        if self.mode == "observe" and self.share > 0.9:
            raise toml_reading.ContradictionError("'share' contradicts mode = 'observe'", "share", fix="lower it")
        return self


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        toml_reading.loads(Settings, text, "app.toml")
    return refused.value.line


def test_a_good_file_becomes_a_model_with_quantities_in_base_units(tmp_path: Path) -> None:
    file = tmp_path / "app.toml"
    file.write_text(
        'rate = "60 k/min"\nshare = "20 %"\n[guards]\ncooldown = "3 min"\n[[pet]]\nkind = "cat"\n[free.x]\ny = [1]\n'
    )
    settings = toml_reading.load(Settings, file)
    assert (settings.rate, settings.share, settings.guards.cooldown_s) == (1000.0, 0.2, 180.0)
    assert settings.pet == [Cat(kind="cat")]
    assert settings.free == {"x": {"y": [1]}}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('rate = "1/s"\n[guards]\ncooldwn = "3 s"', "app.toml:3: unknown key 'cooldwn' (did you mean 'cooldown'?)"),
        (
            'rate = "1/s"\n[guards]\nzzz = 1',
            "app.toml:3: unknown key 'zzz' (valid: cooldown, largest_change, enabled)",
        ),
        ("\n# no rate\n[guards]", "app.toml:1: 'rate' is missing (add it at the top of the file)"),
        ("rate = 50", "app.toml:1: 'rate' needs a unit, such as '50 k/s' or '1M rows/min'"),
        (
            'rate = "3 min"',
            "app.toml:1: 'rate' must be a rate per s, min, h or d, such as '50 k/s' or '1M rows/min', not '3 min'",
        ),
        ('rate = "0/s"', "app.toml:1: 'rate' must be above 0, not 0"),
        ('rate = "-1/s"', "app.toml:1: 'rate' must not be negative, but is '-1/s'"),
        ('rate = "1/s"\nshare = 1.5', "app.toml:2: 'share' must be a share from 0 to 1 ('0 %' to '100 %'), not 1.5"),
        (
            'rate = "1/s"\nmode = "advice"',
            "app.toml:2: 'mode' must be one of observe, advise, regulate, not 'advice' (did you mean 'advise'?)",
        ),
        ('rate = "1/s"\nmode = 3', "app.toml:2: 'mode' must be one of observe, advise, regulate, not 3"),
        (
            'rate = "1/s"\n[guards]\nlargest_change = "5"',
            "app.toml:3: 'largest_change' must be a whole number, not '5'",
        ),
        ('rate = "1/s"\n[guards]\nlargest_change = 0', "app.toml:3: 'largest_change' must be at least 1, not 0"),
        ('rate = "1/s"\nguards.enabled = 1', "app.toml:2: 'enabled' must be true or false, not 1"),
        ('rate = "1/s"\n[[guards]]', "app.toml:2: 'guards' must be a table, not a list (start it with [guards], once)"),
        ('rate = "1/s"\n[pet]', "app.toml:2: 'pet' must be a list, not a table (start each one with [[pet]])"),
        ('rate = "1/s"\n[[pet]]', "app.toml:2: 'kind' is missing in 'pet[0]' (one of dog, cat)"),
        (
            'rate = "1/s"\n[[pet]]\nkind = "cat"\n[[pet]]\nkind = "cow"',
            "app.toml:5: 'kind' must be one of dog, cat, not 'cow' (valid: dog, cat)",
        ),
        (
            'rate = "1/s"\n[[pet]]\nkind = "cat"\ntricks = ["sit"]',
            "app.toml:4: 'tricks' does not belong to kind = 'cat' (valid: kind, lives)",
        ),
        ('rate = "1/s"\n[[pet]]\nkind = "cat"\nlivs = 1', "app.toml:4: unknown key 'livs' (did you mean 'lives'?)"),
        (
            'rate = "1/s"\n[[pet]]\nkind = "dog"\ntricks = ["sit",\n  3]',
            "app.toml:5: 'tricks[1]' must be text in quotes, not 3",
        ),
        (
            'rate = "1/s"\nmode = "observe"\nshare = 1.0',
            "app.toml:3: 'share' contradicts mode = 'observe' (lower it)",
        ),
        ('rate = "1/s"\n[free]\nx = 1', "app.toml:3: 'x' must be a table, not 1"),
    ],
)
def test_a_mistake_is_one_line_with_its_place_reason_and_remedy(text: str, line: str) -> None:
    assert refusal(text) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "rate = 180 s",
            "app.toml:1:12: is not valid TOML: expected newline or end of document after a statement "
            '(put a value with a unit in quotes, such as "180 s")',
        ),
        ("\nmode = advise", "app.toml:2:8: is not valid TOML: invalid value (put text in double quotes)"),
        ('mode = "a"\nmode = "b"', "app.toml:2:11: is not valid TOML: the same key is set twice"),
        ("x = [1,\n", "app.toml:2:1: is not valid TOML: invalid value"),
        ("= 3", "app.toml:1:1: is not valid TOML: invalid statement"),
        ('x = "a\nb"', "app.toml:1:7: is not valid TOML: illegal character '\\n'"),
    ],
)
def test_broken_toml_is_refused_with_line_column_and_reason(text: str, line: str) -> None:
    assert refusal(text) == line


def test_the_first_of_many_nested_brackets_is_not_a_traceback() -> None:
    assert refusal("x = " + "[" * 100_000).startswith("app.toml")


def test_a_number_with_too_many_digits_is_not_a_traceback() -> None:
    assert refusal("x = " + "9" * 5000).startswith("app.toml: is not valid TOML")


def test_all_mistakes_are_shown_at_once_in_the_order_of_the_file() -> None:
    text = 'share = 2.0\nrate = 5\n[guards]\ncooldown = 3\nenable = true\n[[pet]]\nkind = "cow"\n'
    places = [line.split(" ")[0] for line in refusal(text).split("\n")]
    assert places == ["app.toml:1:", "app.toml:2:", "app.toml:4:", "app.toml:5:", "app.toml:7:"]


def test_a_file_full_of_mistakes_shows_ten_and_counts_the_rest() -> None:
    text = 'rate = "1/s"\n' + "".join(f"wrong{number} = 1\n" for number in range(25))
    lines = refusal(text).split("\n")
    assert len(lines) == 11
    assert lines[-1] == "app.toml: and 15 more"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("none.toml", None, "no such file"),
        ("latin.toml", 'title = "\xe9"'.encode("latin-1"), "is not UTF-8 text (byte 9)"),
        ("nul\0.toml", None, "is not the name of a file"),
        ("x" * 300, None, "cannot be read: file name too long"),
        ("", None, "is a directory, not a file"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, name: str, content: bytes | None, reason: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        toml_reading.load(Settings, path)
    assert refused.value.line == f"{path}: {reason}"


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "app.toml"
    file.write_bytes(b'\xef\xbb\xbfrate = "1/s"\r\n\r\n[guards]\r\nwrong = 1\r\n')
    with pytest.raises(ConfigError, match=r"app\.toml:4: unknown key 'wrong'"):
        toml_reading.load(Settings, file)


def test_a_part_of_a_document_is_read_with_the_lines_of_the_whole() -> None:
    document = toml_reading.Document.parse("[settings.guards]\nlargest_change = 3\ncooldown = 9\n", "scenario.toml")
    with pytest.raises(ConfigError, match=r"scenario\.toml:3: 'cooldown' needs a unit"):
        document.read(Guards, at=("settings", "guards"))
    assert document.read(Guards, at=("settings", "absent")) == Guards()


def test_values_that_came_from_elsewhere_are_refused_with_their_key() -> None:
    with pytest.raises(ConfigError, match=r"overrides: cooldown: 'cooldown' needs a unit"):
        toml_reading.Document("overrides", {"cooldown": 3}).read(Guards)


ODD_TOML = '''# a comment with "quotes
a = 1
"quoted \\u0041.x" = 'l#it'
b.c.d = [1, 2, # a comment ]
  { x = 1, y.z = "}]" },
  """multi
  "" line \\""" still""",
]
[[fault]] # the first
kind = "x"
[fault.sub]
when = 1979-05-27 07:32:00
[[fault]]
[[fault.deep]]
k = {}
[[fault.deep]]
k = []
[t . "u.v"]
w = \'\'\'
x\'\'\'\'
last=3'''


def all_paths(value: Any, path: KeyPath = ()) -> set[KeyPath]:
    items: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    paths = {path} if path else set()
    return paths.union(*(all_paths(inner, (*path, key)) for key, inner in items))


def test_every_key_of_an_odd_document_has_its_line() -> None:
    lines = key_lines(ODD_TOML)
    assert set(lines) == all_paths(tomllib.loads(ODD_TOML))
    expected: dict[KeyPath, int] = {
        ("quoted A.x",): 3,
        ("b", "c", "d", 2, "y", "z"): 5,
        ("b", "c", "d", 3): 6,
        ("fault", 0, "kind"): 10,
        ("fault", 0, "sub", "when"): 12,
        ("fault", 1): 13,
        ("fault", 1, "deep", 1, "k"): 17,
        ("t", "u.v", "w"): 19,
        ("t", "u.v", "last"): 21,
    }
    assert {path: lines[path] for path in expected} == expected


@given(st.lists(st.sampled_from(ODD_TOML.split("\n")), max_size=8), st.text(alphabet='a[]{}"=.,#\n1', max_size=10))
def test_any_text_is_either_read_or_refused_with_its_name(lines: list[str], tail: str) -> None:
    text = "\n".join([*lines, tail])
    where = "any.toml"
    try:
        document = toml_reading.Document.parse(text, "any.toml")
    except ConfigError as refused:
        where = refused.where
    else:
        assert set(document.lines) == all_paths(dict(document.data))
    assert where.startswith("any.toml")
