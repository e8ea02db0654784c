"""Problems name the key as the user wrote it, and the nearest valid name."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from homeostat.strict.toml_problems import label, nearest, problems


class Guards(BaseModel):
    model_config = ConfigDict(extra="forbid")
    cooldown: int = 1


def test_an_unknown_key_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValidationError) as invalid:
        Guards.model_validate({"colddown": 3})
    (problem,) = problems(Guards, invalid.value)
    assert (problem.path, problem.what, problem.fix) == (
        ("colddown",),
        "unknown key 'colddown'",
        "did you mean 'cooldown'?",
    )


def test_without_a_near_name_all_are_listed() -> None:
    assert nearest("xyz", ["cooldown", "settle"]) == "valid: cooldown, settle"


def test_a_list_element_is_named_by_its_key_and_number() -> None:
    assert label(("component", 2, "inputs", 1)) == "'inputs[1]'"
