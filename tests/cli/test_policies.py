"""`homeostat policies`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Homeostat = Callable[..., Any]


def test_policies_are_listed_with_the_default_first(homeostat: Homeostat) -> None:
    result = homeostat("policies")
    assert result.code == 0
    listed = homeostat("policies", "--json").json
    assert [line.split()[0] for line in result.out.splitlines()[1:]] == [entry["name"] for entry in listed]
    assert listed[0]["name"] == "provisioning"
    assert all(entry["description"] and "\n" not in entry["description"] for entry in listed)
