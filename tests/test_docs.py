"""The documentation covers every command, option, policy, part and dependency; its links and transcripts are right.

tests/sim/scenario/test_tables.py checks the keys of scenarios, tests/test_settings_docs.py the settings.
"""

from __future__ import annotations

import operator
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

from homeostat.cli.main import app, run
from homeostat.core.errors import ConfigError
from homeostat.core.records import CONTENTS
from homeostat.keyed_state.merge_check import Merging, require_mergeable
from homeostat.policies import registry
from homeostat.sim.scenario import catalogue
from homeostat.sim.simulation import simulate
from support.paths import ROOT

COMMANDS = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def commands(command: Any = None, path: str = "homeostat") -> Iterator[tuple[str, Any]]:
    """Every command that can be called, with its full name."""
    command = command or typer.main.get_command(app)
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    if command.invoke_without_command and path != "homeostat":
        yield path, command
    for name, each in inner.items():
        yield from commands(each, f"{path} {name}")


def section(page: str, heading: str) -> str:
    match = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", page, re.M | re.S)
    assert match, f"no section '## {heading}'"
    return match[1]


@pytest.mark.parametrize(("path", "command"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_every_command_and_option_is_documented(path: str, command: Any) -> None:
    text = section(COMMANDS, path)
    options = [name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)]
    documented = set(re.findall(r"`(--[a-z-]+)`", text))
    assert documented == {name for name in options if name.startswith("--")}
    assert "--json" in documented
    arguments = [parameter.metavar for parameter in command.params if parameter.param_type_name == "argument"]
    if arguments:
        assert " ".join([path, *arguments]) in text


def test_every_section_of_the_page_is_a_command() -> None:
    headings = re.findall(r"^## (.*)$", COMMANDS, re.M)
    assert sorted(headings) == sorted(["homeostat", *(path for path, _ in commands())])


@pytest.mark.parametrize("name", registry.names())
def test_every_policy_is_documented(name: str) -> None:
    assert f"`{name}`" in COMMANDS
    assert f"`{name}`" in (ROOT / "docs" / "reference" / "policies.md").read_text(encoding="utf-8")


def parts() -> set[str]:
    names: set[str] = set()
    for policy in [registry.build(name, {}, scenario_peak_per_s=1.0) for name in registry.names()]:
        names |= {part.name for part in policy.detectors}
        names |= {part.name for part in policy.diagnosers}
        names |= {part.name for part in policy.resolvers}
    return names


def test_every_detector_diagnoser_and_resolver_is_documented() -> None:
    """One line is enough: a row of the detectors may also name the diagnoser and the resolver that it leads to."""
    page = (ROOT / "docs" / "reference" / "detectors.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| (?:Detector|Diagnoser|Resolver) \|.*\n\|[-|]+\|\n((?:\|.*\n)*)", page, re.M)
    assert len(tables) == 3
    rows = [row for table in tables for row in table.splitlines()]
    assert parts() - {name for row in rows for name in re.findall(r"`(.+?)`", row)} == set()
    assert {name for row in rows for name in re.findall(r"`(.+?)`", row.split("|")[1])} - parts() == set()


def test_every_direct_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    optional = project["project"]["optional-dependencies"].values()
    requirements = [
        *project["project"]["dependencies"],
        *(each for group in optional for each in group),
        *project["dependency-groups"]["dev"],
    ]
    names = {re.split(r"[<>=!~\[; ]", requirement)[0] for requirement in requirements}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    reasons = dict(re.findall(r"^\| ([a-z0-9-]+) \| (.+) \|$", page, re.M))
    assert set(reasons) == names
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    # Half a gigabyte that one option of one command needs is not installed for everybody.
    assert {name for name in names if not re.search(rf"^{name}==", locked, re.M)} == {"statsforecast"}


def test_the_survey_of_state_knows_every_command_for_state() -> None:
    """A new command means that something which the page calls missing may be there now."""
    page = (ROOT / "docs" / "explanation" / "state-survey.md").read_text(encoding="utf-8")
    available = {path.removeprefix("homeostat ") for path, _ in commands() if path.startswith("homeostat state ")}
    assert set(re.findall(r"`(state [a-z]+)`", page)) == available


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            file = page.parent / target if target else page
            assert file.exists(), target
            assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


def test_the_index_lists_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    targets = re.findall(r"\]\(([^)#]+)", index.read_text(encoding="utf-8"))
    listed = {(index.parent / target).resolve() for target in targets}
    assert {page for page in (ROOT / "docs").rglob("*.md") if page != index} - listed == set()


def shown_calls(page: Path) -> list[str]:
    """The lines of code blocks that call the program."""
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("homeostat ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_calls_that_pages_show_are_understood(page: Path) -> None:
    by_path = dict(commands())
    for line in shown_calls(page):
        words = shlex.split(line, comments=True)
        path = next((p for n in (3, 2) if (p := " ".join(words[:n])) in by_path), None)
        assert path, line
        options = {name for parameter in by_path[path].params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_the_code_in_contributing_is_that_of_the_example_and_its_test() -> None:
    code = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("examples", "tests/examples")
        for path in sorted((ROOT / folder).glob("*.py"))
    )
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S):
        assert block in code
        assert block.count("\n") < 30


README = ROOT / "README.md"
TRANSCRIPT = re.compile(r"^\$ (homeostat .*)\n((?:(?!```|\$ ).*\n)*)", re.M)
WITH_TRANSCRIPTS = [page for page in PAGES if TRANSCRIPT.search(page.read_text(encoding="utf-8"))]


def printed_by(call: str, capsys: pytest.CaptureFixture[str]) -> str:
    run(shlex.split(call)[1:])
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The directory of somebody who reads all pages, and what each call printed there: one that two pages show is made
    once."""
    directory = tmp_path_factory.mktemp("desk")
    (directory / "examples").symlink_to(ROOT / "examples")
    return directory, {}


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_TRANSCRIPTS, ids=lambda page: page.name)
def test_pages_show_what_the_program_prints(
    page: Path,
    desk: tuple[Path, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In one directory and in order, as a reader types them. `python tests/test_docs.py` updates the pages."""
    directory, output_by_call = desk
    monkeypatch.chdir(directory)
    monkeypatch.delenv("HOMEOSTAT_STORE", raising=False)
    for call, output in TRANSCRIPT.findall(page.read_text(encoding="utf-8")):
        if call not in output_by_call:
            output_by_call[call] = printed_by(call, capsys)
        assert output_by_call[call] == output, call


def test_the_readme_is_short_and_shows_real_output() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    assert len(TRANSCRIPT.findall(text)) >= 4


def test_the_architecture_page_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", text)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / "src" / "homeostat" / path).exists()] == []


def test_the_architecture_page_names_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = {path.parent.name for path in (ROOT / "src" / "homeostat").glob("*/__init__.py")}
    assert {package for package in packages if f"`{package}/`" not in text} == set()


@pytest.mark.parametrize("kind", CONTENTS)
def test_every_key_of_a_record_is_documented(kind: str) -> None:
    page = (ROOT / "docs" / "reference" / "log.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{kind}` |"))
    documented = set(re.findall(r"`(\w+)`", row))
    for other in re.findall(r"as for a (\w+)", row):
        line = next(line for line in page.splitlines() if line.startswith(f"| `{other}` |"))
        documented |= set(re.findall(r"`(\w+)`", line))
    keys = {each.metadata.get("key", each.name) for each in fields(CONTENTS[kind])}
    assert keys - {"extra"} - documented == set()


def test_the_page_on_keyed_state_shows_a_real_refusal() -> None:
    with pytest.raises(ConfigError) as refused:
        require_mergeable(Merging("", operator.add, operator.add), ("a", "b"), "keyed")
    page = (ROOT / "docs" / "explanation" / "keyed-state.md").read_text(encoding="utf-8")
    assert f"```\n{refused.value.line}\n```" in page


@pytest.mark.slow
def test_the_scenario_of_the_tutorial_runs() -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```toml\n(name = .*?)^```", page, re.M | re.S)
    scenario = catalogue.loads(text, "rush.toml")
    result = simulate(scenario, registry.build(scenario.policy, scenario.settings))
    assert result.as_json()["converged"]
    assert len(result.trajectory) > 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_pages_import_exist(page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    for line in [line for block in blocks for line in block.splitlines()]:
        if re.match(r"(from|import) homeostat\b", line):
            exec(line, {})


def paste() -> None:
    """Write into the pages what their commands print now."""
    program = Path(sys.executable).with_name("homeostat")
    for page in WITH_TRANSCRIPTS:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "examples").symlink_to(ROOT / "examples")

            def current(match: re.Match[str], folder: str = folder) -> str:
                words = [str(program), *shlex.split(match[1])[1:]]
                result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
                return f"$ {match[1]}\n{result.stdout}"

            page.write_text(TRANSCRIPT.sub(current, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    paste()
