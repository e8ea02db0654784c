"""The kinds of symptom."""

from __future__ import annotations

from homeostat.core import symptoms


def test_every_kind_has_a_name_of_its_own() -> None:
    names = [value for name, value in vars(symptoms).items() if name.isupper() and isinstance(value, str)]

    assert len(names) == len(set(names)) > 15
    assert symptoms.STATE_SYMPTOMS | set(symptoms.UNHEALTHY_SYMPTOMS) <= set(names)


def test_a_symptom_of_the_state_does_not_make_the_application_unhealthy() -> None:
    assert not symptoms.STATE_SYMPTOMS & set(symptoms.UNHEALTHY_SYMPTOMS)
