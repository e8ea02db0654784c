"""What the loop remembers between two steps."""

from __future__ import annotations

from homeostat.core.findings import Symptom
from homeostat.core.loop_state import HISTORY_KEPT, MODES, WINDOW_KEPT, Standing, State, since
from homeostat.core.view import CURRENT_KEPT


def test_a_loop_only_advises_unless_it_is_set_otherwise() -> None:
    assert State().mode == "advise"
    assert State().mode in MODES


def test_findings_stand_since_they_began() -> None:
    standing = {("pressure", "count"): Standing("s-1", 40.0, Symptom("pressure", "count"))}

    assert since(standing) == {("pressure", "count"): 40.0}


def test_digests_are_kept_for_longer_than_raw_observations() -> None:
    assert WINDOW_KEPT < CURRENT_KEPT < HISTORY_KEPT
