"""The page about parts of one's own names what there is, and what it says about dotted paths holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import homeostat.testing
from homeostat.core.errors import ConfigError
from homeostat.core.view import View
from homeostat.policies import dotted_paths, registry
from support.paths import ROOT

PAGE = (ROOT / "docs" / "reference" / "plugins.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.S))
WORDS = set(re.findall(r"[a-z_]+", " ".join(CODE)))

MODULE = """
class Sees:
    name = "sees"
    def detect(self, view):
        return []

class Needs(Sees):
    def __init__(self, most):
        self.most = most

ready = Needs(3)
number = 7

def own():
    raise ValueError("not today")
"""


@pytest.mark.parametrize("name", [name for name in homeostat.testing.__all__ if name.islower()])
def test_every_builder_and_check_is_on_the_page(name: str) -> None:
    assert name in WORDS or name in ("described", "sample_views", "check_survives_kill")


def test_all_that_a_view_offers_is_on_the_page() -> None:
    public = {name for name in dir(View) if not name.startswith("_")} | set(View.__dataclass_fields__)
    assert public - WORDS == {"epoch", "numbers", "once"}, "these are for models"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_parts_of_a_test.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("here")
def test_a_class_is_made_and_an_object_taken_as_it_is() -> None:
    paths = ["own_parts_of_a_test:Sees", "own_parts_of_a_test:ready"]
    policy = registry.build("provisioning", {"plugins": {"detectors": paths}})
    made, ready = policy.detectors[-2:]
    assert made.name == "sees"
    assert ready is dotted_paths.load("own_parts_of_a_test:ready")
    assert len(policy.detectors) == len(registry.build("provisioning").detectors) + 2


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("no_such_module:Sees", "cannot import 'no_such_module'"),
        ("own_parts_of_a_test:nobody", "has no 'nobody'"),
        ("own_parts_of_a_test:Needs", "creating the plug-in raised TypeError"),
        ("own_parts_of_a_test:number", "has no method 'detect'"),
    ],
)
def test_a_part_that_cannot_be_used_is_refused_by_name(path: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        registry.build("provisioning", {"plugins": {"detectors": [path]}})
    assert refused.value.line.startswith(path)
    assert "\n" not in refused.value.line


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("path", ["own_parts_of_a_test:Sees", "own_parts_of_a_test:number", "own_parts_of_a_test:own"])
def test_a_policy_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ConfigError) as refused:
        registry.build(path)
    assert refused.value.line.startswith(path)
