"""The script that counts finds what it is meant to find."""

from __future__ import annotations

import ast
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

import pytest

from support.paths import ROOT


@pytest.fixture(scope="module")
def counts() -> ModuleType:
    loader = SourceFileLoader("counts", str(ROOT / ".ci" / "counts"))
    spec = spec_from_loader("counts", loader)
    assert spec is not None
    module = module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "counts", module)
        loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("def f(r):\n    return r.body['kind']", 1),
        ("def f(r):\n    return r.body.get('kind')", 1),
        ("def f(r):\n    return 'kind' in r.body", 1),
        ("def f(r):\n    return number(r.body, 'rows')", 1),
        ("def f(r):\n    kept = r.body\n    return kept['kind']", 1),
        ("def f(body: Mapping[str, JSON]):\n    return body['kind']", 1),
        ("r = Record('s-1', 'symptom', 1.0, '', body={'kind': 'x'})", 1),
        ("def f(r):\n    return r.content.cause, content_of(r.kind, r.body)", 0),
        ("def f(body: bytes):\n    return json.loads(body)['kind']", 0),
    ],
)
def test_reads_of_bodies_by_key_are_found(counts: ModuleType, code: str, lines: int) -> None:
    assert len(list(counts.body_reads(ROOT / "x.py", ast.parse(code)))) == lines


def test_long_functions_and_large_classes_are_found(counts: ModuleType) -> None:
    long = "def f():\n" + "    pass\n" * counts.MOST_FUNCTION_LINES
    assert len(list(counts.long_functions(ROOT / "x.py", ast.parse(long)))) == 1
    assert not list(counts.long_functions(ROOT / "x.py", ast.parse(long.removesuffix("    pass\n"))))
    methods = "".join(f"    def m{n}(self): ...\n" for n in range(counts.MOST_METHODS + 1))
    assert len(list(counts.large_classes(ROOT / "x.py", ast.parse("class C:\n" + methods)))) == 1


def test_names_that_differ_only_in_their_ending_are_found(counts: ModuleType) -> None:
    names = ["policy.py", "policies/__init__.py", "serve.py", "server.py", "plan.py", "plane_tickets.py", "log.py"]
    assert list(counts.alike_names([ROOT / name for name in names])) == ["policy and policies", "serve and server"]


def test_a_circle_of_imports_is_found(counts: ModuleType) -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
    assert counts.reachable("a", edges) == {"a", "b", "c"}
    assert "d" not in counts.reachable("a", edges)
