"""docs/reference/settings.md lists every key with type, default, meaning and variable, and a file that loads."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from homeostat import settings_file
from homeostat.core.errors import ConfigError
from homeostat.policies import registry
from homeostat.policies.peers import PEERS
from homeostat.settings import Settings
from homeostat.settings_file import Entry
from homeostat.strict.units import parse_duration, parse_error, parse_rate, parse_share, parse_size
from support.paths import DOCS

PAGE = DOCS / "reference" / "settings.md"
HEAD = "| Key | Type | Default | Meaning | Variable |\n|---|---|---|---|---|\n"
DIMENSIONS = {
    parse_duration: "duration",
    parse_rate: "rate",
    parse_share: "share",
    parse_error: "share",
    parse_size: "size",
}


def documentation() -> str:
    return PAGE.read_text(encoding="utf-8")


def type_of(entry: Entry) -> str:
    annotation: Any = entry.info.annotation
    members = [member for member in get_args(annotation) if member is not type(None)]
    if get_origin(annotation) is Literal:
        return ", ".join(f'`"{choice}"`' for choice in members)
    if get_origin(annotation) is list:
        return "list of text"
    if annotation in (bool, str):
        return "true or false" if annotation is bool else "text"
    kind = next((word for parse, word in DIMENSIONS.items() if parse is entry.parser), "number")
    return " ".join([kind, *bounds([*entry.info.metadata, *inner_metadata(members)])])


def inner_metadata(members: list[Any]) -> list[object]:
    parts = [part for member in members for part in getattr(member, "__metadata__", ())]
    return [constraint for part in parts for constraint in getattr(part, "metadata", [part])]


def bounds(metadata: list[object]) -> list[str]:
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    limits = [
        f"{sign} {getattr(part, name):g}" for part in metadata for name, sign in signs.items() if hasattr(part, name)
    ]
    return [" and ".join(limits)] if limits else []


def row(entry: Entry) -> str:
    default = "none" if entry.default in (None, []) else f"`{json.dumps(entry.default, ensure_ascii=False)}`"
    cells = (f"`{entry.path[-1]}`", type_of(entry), default, entry.info.description or "", f"`{entry.variable}`")
    return f"| {' | '.join(cells)} |\n"


def tables() -> dict[str, str]:
    """Heading → the table below it."""
    by_heading: dict[str, str] = {}
    for entry in settings_file.entries():
        heading = f"`[{entry.path[0]}]`" if len(entry.path) == 2 else "Top level"
        by_heading[heading] = by_heading.get(heading, HEAD) + row(entry)
    return by_heading


@pytest.mark.parametrize("heading", tables())
def test_every_setting_is_documented_as_it_is(heading: str) -> None:
    """`python tests/test_settings_docs.py` updates the tables."""
    section = documentation().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    assert "".join(re.findall(r"^\|.*\n", section, re.M)) == tables()[heading]


def test_every_setting_says_what_it_means() -> None:
    assert not [entry.key for entry in settings_file.entries() if not entry.info.description]


def test_every_section_has_a_setting() -> None:
    headings = re.findall(r"^## (`\[.*|Top level)$", documentation(), re.M)
    assert headings == list(tables())


def code(language: str) -> str:
    match = re.search(rf"^```{language}\n(.*?)^```", documentation(), re.M | re.S)
    assert match
    return match[1]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("homeostat.toml")
    path.write_text(code("toml"), encoding="utf-8")
    return path


def test_the_file_of_the_documentation_is_right_and_has_every_table(example: Path) -> None:
    checked = settings_file.check(example)
    assert (checked.policy, checked.objective.throughput_per_s, checked.objective.cost_limit) == ("throughput", 5e4, 40)
    assert set(checked.sections) == set(Settings.model_fields)
    built = registry.build(checked.policy, checked.sections)
    assert (built.settle_s, built.window_s) == (120.0, 900.0)


def test_the_refusals_of_the_documentation_are_real(example: Path) -> None:
    text = code("toml").replace('"throughput"', '"troughput"').replace("cooldown =", "colddown =")
    example.write_text(text.replace('settle = "2 min"', "settle = 120"), encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        settings_file.check(example)
    assert f"reported together:\n\n```\n{refused.value.line}\n```" in documentation()


def test_every_peer_refuses_a_cost_limit_as_the_documentation_says(example: Path) -> None:
    for name in PEERS:
        with pytest.raises(ConfigError, match=f"policy '{name}' ignores 'cost_limit'"):
            settings_file.load(example, {}, {"policy": name})


def paste() -> None:
    """Write the tables of the page from the models."""
    text = documentation()
    for heading, table in tables().items():
        before, _, after = text.partition(f"\n## {heading}\n")
        here, border, rest = after.partition("\n## ")
        prose = re.sub(r"(^\|.*\n)+|^PASTE\n?", "", here, flags=re.M).strip()
        body = f"\n{prose}\n\n{table}" if prose else f"\n{table}"
        text = f"{before}\n## {heading}\n{body}{border}{rest}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    paste()
