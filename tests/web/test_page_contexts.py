"""Every template shows exactly the fields of its documented context."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from jinja2 import meta, nodes

from homeostat.web import pages
from homeostat.web.page_contexts import JSON_ONLY, TEMPLATES, PageFrame

FOLDER = Path(pages.__file__).parent / "templates"


def variables(template: str) -> set[str]:
    """What the template and the one that it extends read from their context."""
    tree = pages.environment().parse((FOLDER / template).read_text(encoding="utf-8"))
    base = {str(each.template.value) for each in tree.find_all(nodes.Extends) if isinstance(each.template, nodes.Const)}
    own = {each.target for each in tree.find_all(nodes.Import)}
    own |= {each.target.name for each in tree.find_all(nodes.Assign) if isinstance(each.target, nodes.Name)}
    return (
        set(meta.find_undeclared_variables(tree)).union(*map(variables, base)) - set(pages.environment().globals) - own
    )


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_reads_the_fields_of_its_context_and_no_others(template: str) -> None:
    context = {each.name for each in fields(TEMPLATES[template])}
    frame = {each.name for each in fields(PageFrame)}
    read = variables(template)
    assert read <= context | frame
    assert context - read == JSON_ONLY.get(template, frozenset())


def test_every_template_has_a_documented_context() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {*TEMPLATES, "base.html", "parts.html"}
    for context in (*TEMPLATES.values(), PageFrame):
        assert context.__doc__
        assert not context.__doc__.startswith(f"{context.__name__}("), "a dataclass documents itself with its signature"
