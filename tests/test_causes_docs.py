"""The page of causes lists every cause as it is declared. `python tests/test_causes_docs.py` updates its table."""

from __future__ import annotations

import re

from homeostat.core import causes, source_causes, time_causes
from homeostat.core.causes import Cause, declared_causes
from support.paths import ROOT

PAGE = ROOT / "docs" / "reference" / "causes.md"
HEADING = (
    "| Cause | Meaning | Kind | Fixed by | More workers help | Alert |\n"
    "|-------|---------|------|----------|-------------------|-------|\n"
)
TABLE = re.compile(rf"^{re.escape(HEADING)}(?:\|.*\n)*", re.M)


def kind(cause: Cause) -> str:
    kinds = (("fault", cause.fault), ("state risk", cause.state_risk), ("harmless", cause.harmless))
    return next((name for name, holds in kinds if holds), "")


def alert(cause: Cause) -> str:
    if not cause.alerts:
        return ""
    return f"{'after a while' if cause.alert_after_patience else 'at once'}: {cause.advice}"


def row(cause: Cause) -> str:
    cells = (
        f"`{cause.name}`",
        cause.sentence.replace("{where}", "*component*"),
        kind(cause),
        ", ".join(f"`{action}`" for action in cause.mended_by) or "a person",
        "yes" if cause.workers_help else "no",
        alert(cause) or "no",
    )
    return f"| {' | '.join(cells)} |\n"


def table() -> str:
    """The causes that ship; a plug-in that another test imports may have declared more."""
    shipped_names = {
        value
        for room in (causes, source_causes, time_causes)
        for value in vars(room).values()
        if isinstance(value, str)
    }
    return HEADING + "".join(row(cause) for cause in declared_causes() if cause.name in shipped_names)


def test_the_page_lists_every_cause_as_it_is_declared() -> None:
    match = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert match is not None
    assert match[0] == table()
    assert all(f"| `{name}` |" in match[0] for name in (causes.UNDER_PROVISIONED, causes.UNSCALABLE_STATE))


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
