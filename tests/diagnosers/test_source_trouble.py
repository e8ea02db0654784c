"""The cause that the source itself names is the diagnosis."""

from __future__ import annotations

from homeostat.core.evidence import SourceTrouble
from homeostat.core.findings import Symptom
from homeostat.core.source_causes import SOURCE_GONE
from homeostat.core.symptoms import SOURCE_TROUBLE
from homeostat.diagnosers.source_trouble import SourceDiagnoser
from homeostat.testing import check_diagnoser


def test_the_trouble_is_the_cause() -> None:
    symptom = Symptom(SOURCE_TROUBLE, "", 1.0, SourceTrouble(SOURCE_GONE, "orders: orders does not exist"))
    check_diagnoser(SourceDiagnoser(), [symptom])
