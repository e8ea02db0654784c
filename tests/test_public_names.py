"""What `import homeostat as hs` offers."""

from __future__ import annotations

import pkgutil

import pytest

import homeostat


@pytest.mark.parametrize("name", homeostat.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(homeostat, name) is not None


def test_no_module_hides_a_public_name() -> None:
    """Importing `homeostat.x` sets `homeostat.x` to the module, also if that was the name of a function."""
    modules = {module.name for module in pkgutil.iter_modules(homeostat.__path__)}
    assert modules.isdisjoint(homeostat.__all__)
