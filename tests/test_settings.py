"""The settings of the loop: what they accept, what they refuse, and that no slip of a pen goes unnoticed."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from homeostat import settings, settings_file
from homeostat.core.errors import ConfigError
from homeostat.policies import registry
from homeostat.settings_file import Entry
from homeostat.sim.scenario import catalogue


def test_nothing_set_is_all_defaults() -> None:
    assert settings.read({}) == settings.Settings()


def test_quantities_are_read_with_their_units() -> None:
    read = settings.read({"guards": {"cooldown": "2 min"}, "paper": {"noise_filter": "3 %", "idle_pending": "50 ms"}})
    assert (read.guards.cooldown, read.paper.noise_filter, read.paper.idle_pending) == (120.0, 0.03, 0.05)


@pytest.mark.parametrize(
    ("given_tables", "line"),
    [
        ({"gards": {}}, "settings: gards: unknown key 'gards' (did you mean 'guards'?)"),
        ({"loop": {"window": "0 s"}}, "settings: loop.window: 'window' must be above 0, not 0"),
        ({"loop": {"window": "-5 s"}}, "settings: loop.window: 'window' must not be negative, but is '-5 s'"),
        ({"loop": {"act_above": 1.5}}, "settings: loop.act_above: 'act_above' must be a share from 0 to 1"),
        ({"guards": {"largest_change": 1}}, "settings: guards.largest_change: 'largest_change' must be above 1, not 1"),
        ({"guards": {"largest_change": True}}, "settings: guards.largest_change: 'largest_change' must be a number"),
        ({"sensitivity": {"floor": 0}}, "settings: sensitivity.floor: 'floor' must be above 0, not 0"),
        ({"sensitivity": {"slack": -0.1}}, "settings: sensitivity.slack: 'slack' must be at least 0, not -0.1"),
        ({"paper": {"shrink_factor": 1.0}}, "settings: paper.shrink_factor: 'shrink_factor' must be below 1, not 1"),
        ({"paper": {"fence": 1}}, "settings: paper.fence: 'fence' must be true or false, not 1"),
        ({"plugins": {"detectors": "a:B"}}, "settings: plugins.detectors: 'detectors' must be a list, not 'a:B'"),
        (
            {"plugins": {"resolvers": [3]}},
            "settings: plugins.resolvers.0: 'resolvers[0]' must be text in quotes, not 3",
        ),
    ],
)
def test_a_bad_value_is_refused_with_its_key_and_reason(given_tables: dict[str, dict[str, object]], line: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings.read(given_tables)
    assert refused.value.line.startswith(line)


@pytest.mark.parametrize("path", ["mine", "mine.parts", "mine:", ":Part", ""])
def test_a_plug_in_is_named_by_module_and_name(path: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a dotted path; write package\.module:name"):
        settings.read({"plugins": {"diagnosers": ["mine.parts:Good", path]}})


def test_shrinking_never_cools_down_for_less_time_than_growing() -> None:
    with pytest.raises(ConfigError, match=r"guards\.cooldown_shrink: .* must not be shorter .* lower cooldown"):
        settings.read({"guards": {"cooldown": "10 min", "cooldown_shrink": "5 min"}})
    assert settings.read({"guards": {"cooldown": "5 min", "cooldown_shrink": "5 min"}}).guards.cooldown == 300.0


def test_the_papers_window_lies_within_its_settling_time() -> None:
    with pytest.raises(ConfigError, match=r"settings: paper\.window: .* must not be longer .* or raise settle"):
        settings.read({"paper": {"settle": "60 s"}})


def test_the_same_tables_stand_in_a_scenario_and_are_refused_with_its_line() -> None:
    text = scenario('[settings.loop]\nsettle = "2 min"\n')
    assert settings.read(catalogue.loads(text).settings).loop.settle == 120.0
    with pytest.raises(ConfigError, match=rf"s\.toml:{text.count(chr(10))}: unknown key 'setle' .*'settle'"):
        catalogue.loads(text.replace("settle =", "setle ="), "s.toml")


def scenario(tail: str) -> str:
    head = 'title = "t"\nengine = "dataflow"\nduration = "1 h"\n'
    source = '[[component]]\nname = "s"\nkind = "source"\nrate = "1 k/s"\n'
    return f'{head}{source}[workload]\nkind = "constant"\nrate = "9/s"\n{tail}'


def test_settings_reach_the_policy_they_are_for() -> None:
    given_tables: dict[str, dict[str, object]] = {
        "guards": {"largest_change": 7, "cooldown": "10 s", "cooldown_shrink": "20 s", "confirm": "30 s"},
        "loop": {"cadence": "40 s", "settle": "50 s", "window": "60 s"},
        "sensitivity": {"alarm": 6.5},
        "paper": {"cadence": "70 s", "settle": "90 s", "window": "80 s"},
    }
    ours, papers = (registry.build(name, given_tables) for name in ("provisioning", "provisioning.paper"))
    assert (ours.cadence_s, ours.settle_s, ours.window_s) == (40.0, 50.0, 60.0)
    assert (papers.cadence_s, papers.settle_s, papers.window_s) == (70.0, 90.0, 80.0)
    numbers = {value for guard in ours.guards for value in slots(guard).values() if isinstance(value, float)}
    assert {7.0, 10.0, 20.0, 30.0} <= numbers
    assert {
        slots(detector.sensitivity)["alarm"] for detector in ours.detectors if hasattr(detector, "sensitivity")
    } == {6.5}


def slots(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in getattr(value, "__dataclass_fields__", {})}


PARTS = """
from homeostat.core.policy_definition import Policy

class Hot:
    name = "hot"
    def detect(self, view):
        return ()

class Needy:
    def __init__(self, limit):
        self.limit = limit

class Broken:
    def __init__(self):
        raise OSError("no\\nsensor")

def own():
    return Policy("own")

def broken():
    raise RuntimeError("not today")
"""


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config_test_parts.py").write_text(PARTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_check_finds_what_the_file_names(parts: Path) -> None:
    text = 'policy = "config_test_parts:own"\n[plugins]\ndetectors = ["config_test_parts:Hot"]\n'
    (parts / "homeostat.toml").write_text(text)
    checked = settings_file.check("homeostat.toml")
    assert registry.build(checked.policy, checked.sections).detectors[0].name == "hot"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            '[plugins]\ndetectors = ["config_test_parts:Hot",\n"config_test_parts:Hotter"]',
            "homeostat.toml:3: 'config_test_parts:Hotter': module 'config_test_parts' has no 'Hotter'",
        ),
        (
            '[plugins]\nresolvers = ["config_test_parts:Hot"]',
            "homeostat.toml:2: 'config_test_parts:Hot': the plug-in has no method 'resolve', which all resolvers need",
        ),
        (
            '[plugins]\ndetectors = ["no_such_module:Hot"]',
            "homeostat.toml:2: 'no_such_module:Hot': cannot import 'no_such_module': No module named 'no_such_module'",
        ),
        (
            '[plugins]\ndetectors = ["config_test_parts:Broken"]',
            "homeostat.toml:2: 'config_test_parts:Broken': creating the plug-in raised OSError: no sensor",
        ),
        ('policy = "config_test_parts:Hot"', "homeostat.toml:1: 'config_test_parts:Hot': this is not a policy"),
        (
            'policy = "config_test_parts:broken"',
            "homeostat.toml:1: 'config_test_parts:broken': creating the policy raised RuntimeError: not today",
        ),
    ],
)
def test_check_refuses_parts_that_cannot_be_had(text: str, line: str, parts: Path) -> None:
    (parts / "homeostat.toml").write_text(text)
    with pytest.raises(ConfigError) as refused:
        settings_file.check("homeostat.toml")
    assert refused.value.line.startswith(line)


ENTRIES = settings_file.entries()
WANTED = {
    "throughput": "5 k/s",
    "lag": "1 min",
    "catch_up": "5 min",
    "latency": "2 s",
    "cost_limit": 40,
    "model_error": "30 %",
}


def complete_file() -> Iterator[str]:
    """A file with every key there is, a line each, at its default or another valid value."""
    section = ""
    for entry in ENTRIES:
        if len(entry.path) == 2 and entry.path[0] != section:
            section = entry.path[0]
            yield f"[{section}]"
        value = entry.default if entry.default is not None else WANTED[entry.path[-1]]
        yield f"{entry.path[-1]} = {json.dumps(value, ensure_ascii=False)}"


LINES = tuple(complete_file())
NUMBERS = dict(zip(ENTRIES, (n for n, line in enumerate(LINES, 1) if not line.startswith("[")), strict=True))
WRONG_UNITS = {
    "parse_size": ['"60"', "60", '"60 mb"', '"60 s"', '"6 stones"', '"-6 MB"', "true", "[]"],
    "parse_duration": [
        '"60"',
        "60",
        '"60 S"',
        '"60 k/s"',
        '"60 %"',
        '"6 parsecs"',
        '"-6 s"',
        '"1 s/s"',
        '"nan s"',
        '""',
    ],
    "parse_rate": ['"5"', "5", '"5 k"', '"5 k/x"', '"5 min"', '"5 %"', '"-5 /s"', '"5 apples/s"', '"1e999 /s"', '""'],
    "parse_share": ['"75"', "75", '"75 s"', '"75 k/s"', '"750 %"', '"-1 %"', "-0.1", "nan", '""'],
    "parse_error": ['"30"', "30", '"30 s"', '"-1 %"', "-0.1", "nan", "true", '"0 %"', "0", '""'],
    "number": ['"3"', '"3 s"', '"3 %"', "nan", "inf", "-1.0", "true", '""'],
}


@contextmanager
def file_with(lines: list[str]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "homeostat.toml"
        path.write_text("\n".join(lines), encoding="utf-8")
        yield path


def load(lines: list[str]) -> settings_file.Config:
    with file_with(lines) as path:
        return settings_file.load(path, {})


def refused_at(number: int, lines: list[str]) -> None:
    with pytest.raises(ConfigError) as refused:
        load(lines)
    first = refused.value.line.splitlines()[0]
    assert re.search(rf"homeostat\.toml:{number}(:\d+)?: \S", first), first


def test_a_file_with_every_key_is_read() -> None:
    loaded = load(list(LINES))
    assert (loaded.policy, loaded.mode) == (registry.DEFAULT, "advise")
    assert all(value.origin != "default" for value in loaded.values.values())


@given(entry=st.sampled_from(ENTRIES), letters=st.text("abcdefghijklmnopqrstuvwxyz_", max_size=3), data=st.data())
def test_any_change_to_a_key_is_refused_with_its_line(entry: Entry, letters: str, data: st.DataObject) -> None:
    key = entry.path[-1]
    start = data.draw(st.integers(0, len(key)))
    end = data.draw(st.integers(start, len(key)))
    changed = key[:start] + letters + key[end:]
    assume(all(changed not in (other.path[-1], other.path[0]) for other in ENTRIES))
    lines, number = list(LINES), NUMBERS[entry]
    lines[number - 1] = changed + lines[number - 1].removeprefix(key)
    refused_at(number, lines)


@given(entry=st.sampled_from([entry for entry in ENTRIES if entry.parser]), data=st.data())
def test_any_wrong_unit_is_refused_with_its_line(entry: Entry, data: st.DataObject) -> None:
    wrong = data.draw(st.sampled_from(WRONG_UNITS[getattr(entry.parser, "__name__", "")]))
    lines, number = list(LINES), NUMBERS[entry]
    lines[number - 1] = f"{entry.path[-1]} = {wrong}"
    refused_at(number, lines)


@given(entry=st.sampled_from([entry for entry in ENTRIES if isinstance(entry.default, float)]), data=st.data())
def test_a_plain_number_takes_no_unit(entry: Entry, data: st.DataObject) -> None:
    lines, number = list(LINES), NUMBERS[entry]
    lines[number - 1] = f"{entry.path[-1]} = {data.draw(st.sampled_from(WRONG_UNITS['number']))}"
    refused_at(number, lines)


TEXT = "\n".join(LINES)


@given(start=st.integers(0, len(TEXT)), length=st.integers(0, 12), text=st.text(max_size=6))
def test_any_text_is_read_or_refused_with_its_file(start: int, length: int, text: str) -> None:
    where = "homeostat.toml"
    try:
        load([TEXT[:start] + text + TEXT[start + length :]])
    except ConfigError as refused:
        where = refused.where
    assert "homeostat.toml" in where


@given(entry=st.sampled_from(ENTRIES), text=st.text(max_size=12))
def test_any_text_in_a_variable_is_read_or_refused_by_its_name(entry: Entry, text: str) -> None:
    where, loaded = entry.variable, settings_file.load(None, {})
    try:
        loaded = settings_file.load(None, {entry.variable: text})
    except ConfigError as refused:
        where = refused.where
    assert where == entry.variable
    numbers = [value for table in loaded.settings.model_dump().values() for value in table.values()]
    assert all(math.isfinite(number) for number in numbers if isinstance(number, float))


@pytest.mark.parametrize("entry", [entry for entry in ENTRIES if len(entry.path) == 2], ids=lambda entry: entry.key)
def test_a_default_is_shown_as_it_would_be_written(entry: Entry) -> None:
    section, key = entry.path
    default = entry.info.get_default(call_default_factory=True)
    if section in settings.Settings.model_fields:
        read = settings.read({section: {key: entry.default}})
        expected = default if isinstance(default, str) else pytest.approx(default, rel=1e-12)
        assert getattr(getattr(read, section), key) == expected
    elif section in ("log", "files", "kafka"):
        loaded = settings_file.load(None, {}, {section: {key: entry.default}})
        assert getattr(getattr(loaded, section), key) == default
    else:
        assert entry.default is default is None
