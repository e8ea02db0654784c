"""From a file on the command line to the pipelines in it, or one clear line about what is wrong with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.runtime import pipeline_files

TWO = """\
import homeostat as hs

@hs.pipeline(objective=hs.Throughput(at_least=100), executors=3)
def words(ctx):
    return None

@hs.pipeline(name="letters", trigger="5 s")
def other(ctx):
    return None

again = words
"""


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Loading an application changes what can be imported, as it should in a process of its own."""
    path, modules = list(sys.path), dict(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return tmp_path / "app.py"


def refusal(app: Path | str) -> str:
    with pytest.raises(ConfigError) as refused:
        pipeline_files.load(str(app))
    assert refused.value.exit_code == 2
    assert "\n" not in refused.value.line
    return refused.value.line


def test_all_pipelines_of_a_file_in_its_order(app: Path) -> None:
    app.write_text(TWO)
    words, letters = pipeline_files.load(str(app))
    assert (words.name, words.objective.throughput_per_s, words.start) == ("words", 100.0, {"executors": 3})
    assert (letters.name, letters.trigger_s) == ("letters", 5.0)


def test_one_pipeline_by_its_name(app: Path) -> None:
    app.write_text(TWO)
    assert [pipeline.name for pipeline in pipeline_files.load(f"{app}:letters")] == ["letters"]
    assert refusal(f"{app}:lettres") == (f"{app}: the file has no pipeline 'lettres' (did you mean 'letters'?)")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert refusal(tmp_path / "ap.py") == f"{tmp_path}/ap.py: no such application file (give the path of a Python file)"
    assert "no such application file" in refusal(tmp_path)


def test_a_file_without_a_pipeline(app: Path) -> None:
    app.write_text("import homeostat\n\ndef words(ctx):\n    return None\n")
    assert refusal(app) == f"{app}: the file defines no pipeline (decorate a function with @homeostat.pipeline(…))"


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text("[objective]\n")
    assert "not a Python file" in refusal(tmp_path / "app.toml")


def test_two_pipelines_of_one_name(app: Path) -> None:
    app.write_text(TWO.replace('name="letters"', 'name="words"'))
    assert refusal(app) == f"{app}: two pipelines are named 'words' (rename one with @homeostat.pipeline(name=…))"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\nx = 1 / 0\n", "app.py:2: importing the file raised ZeroDivisionError: division by zero"),
        ("def f(:\n", "app.py:1: importing the file raised SyntaxError"),
        ("import sys\n\nsys.exit(3)\n", "app.py:3: importing the file raised SystemExit: 3"),
        ("import nowhere_to_be_found\n", "app.py:1: importing the file raised ModuleNotFoundError: No module named"),
        (
            "import homeostat as hs\n\n@hs.pipeline(workers=3)\ndef f(ctx): ...\n",
            "app.py:3: pipeline: unknown knob",
        ),
        (
            "import homeostat as hs\n\n@hs.pipeline(executors=0)\ndef f(ctx): ...\n",
            "executors = 0 must be a whole number",
        ),
        (
            "import homeostat as hs\n\n@hs.pipeline\ndef f(ctx): ...\n",
            "app.py:3: pipeline: the decorator is used",
        ),
        ('import homeostat as hs\n\n@hs.pipeline(trigger="5")\ndef f(ctx): ...\n', "app.py:3: pipeline: trigger"),
        ("import homeostat as hs\n\n@hs.pipeline(trigger=-1)\ndef f(ctx): ...\n", "app.py:3: pipeline: trigger"),
        ('import homeostat as hs\n\n@hs.pipeline(name="a/b")\ndef f(ctx): ...\n', "app.py:3: pipeline: 'a/b'"),
        (
            "import homeostat as hs\n\nhs.Throughput(at_least=-1)\n",
            "app.py:3: objective: Throughput must be above 0, but is -1",
        ),
        (
            "import homeostat as hs\n\nhs.ModelError(at_most=5)\n",
            "app.py:3: objective: ModelError must be a share from 0 to 1",
        ),
        ("import homeostat as hs\n\nhs.ModelError(0)\n", "app.py:3: objective: ModelError must be above 0, but is 0"),
    ],
)
def test_a_file_that_raises_is_reported_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    (tmp_path / "app.py").write_text(text)
    assert words in refusal(tmp_path / "app.py")
    monkeypatch.chdir(tmp_path)
    assert words in refusal("app.py")


def test_modules_beside_the_file_are_found(app: Path) -> None:
    (app.parent / "beside_the_application.py").write_text("RATE = 7\n")
    app.write_text(
        "import homeostat as hs\nfrom beside_the_application import RATE\n\n"
        "@hs.pipeline(objective=hs.Throughput(RATE))\ndef words(ctx): ...\n"
    )
    (words,) = pipeline_files.load(str(app))
    assert words.objective.throughput_per_s == 7.0


def test_loading_leaves_no_compiled_file_beside_the_application(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    app.write_text(TWO)
    before = set(app.parent.rglob("*"))
    pipeline_files.load(str(app))
    assert set(app.parent.rglob("*")) == before


def test_a_file_may_be_called_like_a_module_that_is_in_use(tmp_path: Path) -> None:
    file = tmp_path / "homeostat.py"
    file.write_text("import homeostat as hs\n\n@hs.pipeline()\ndef words(ctx): ...\n")
    (words,) = pipeline_files.load(str(file))
    assert words.name == "words"
    import homeostat

    assert hasattr(homeostat, "__version__")


def test_what_the_file_defines_can_be_sent_to_a_process_that_cannot_import_it(app: Path) -> None:
    from pyspark import cloudpickle

    app.write_text(TWO + "\ndef double(x):\n    return 2 * x\n")
    pipeline_files.load(str(app))
    pipeline_files.send_along(str(app))
    sent = cloudpickle.dumps(sys.modules["app"].double)  # type: ignore[no-untyped-call]
    there = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())(21))"
    result = subprocess.run([sys.executable, "-c", there], input=sent, capture_output=True, check=True, cwd=Path.home())
    assert result.stdout == b"42\n"
