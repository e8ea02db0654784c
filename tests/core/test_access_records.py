"""Accesses are read as fields, whatever stands in the file."""

from __future__ import annotations

from homeostat.core.access_records import AccessContent, access_of
from homeostat.core.records import Record


def test_an_access_is_read_as_it_was_written() -> None:
    content = AccessContent("refusal", "bob", "read", "10.0.0.1", "GET /audit", "403", 2)
    assert access_of(Record.of("access-1", 1.0, content, "refused")) == content


def test_other_records_are_no_accesses_and_damage_is_read_as_nothing() -> None:
    assert access_of(Record("a-1", "action", 1.0, "scale")) is None
    assert access_of(Record("x", "access", 1.0, "", body={"event": 3, "unrecorded": "many"})) == AccessContent("")
