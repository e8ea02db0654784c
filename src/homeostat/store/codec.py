"""The stored form of a record, the same for every store.

JSON has neither NaN nor infinities; they are written as `{"$float": "nan"}` and read back as they were.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import cast

from homeostat.core.errors import StoreError
from homeostat.core.record_json import JSON
from homeostat.core.records import Record

_FLOAT = "$float"
_ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def dump(value: object) -> str:
    """The value as strict JSON. Numpy's scalars become plain numbers, tuples lists; the rest is refused."""
    return _ENCODER.encode(_tag(value))


def load(text: str) -> JSON:
    return cast(JSON, json.loads(text, object_hook=_untag if _FLOAT in text else None))


def load_body(text: str) -> dict[str, JSON]:
    body = load(text)
    if not isinstance(body, dict):
        raise ValueError(f"a record's body is {text[:40]!r}")
    return body


def dump_of(value: object, of: str) -> str:
    """`dump`, with an error that names what the value belongs to."""
    try:
        return dump(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            f"{of} cannot be written as JSON: {error}",
            fix="use only text, numbers, true or false, null, lists and mappings with text keys",
        ) from None


def split_record(record: Record) -> tuple[Record, str]:
    """The record as it will be read again, without its body, and the body as JSON."""
    if not record.id:
        raise StoreError(f"a record of kind {record.kind!r} has no id", fix="give every record an id")
    if not math.isfinite(record.at_s):
        raise StoreError(f"record {record.id!r} has the time {record.at_s}", fix="give it a finite time")
    head = replace(
        record,
        id=mend(record.id),
        kind=mend(record.kind),
        at_s=float(record.at_s) + 0.0,
        text=mend(record.text),
        component=mend(record.component),
        because=tuple(mend(id) for id in record.because),
        body={},
    )
    return head, dump_of(record.body, f"the body of record {record.id!r}")


def mend(text: str) -> str:
    """Lone surrogates, which occur in unusual file names, cannot be stored or printed, so they are escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _tag(value: object) -> JSON:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return mend(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {_FLOAT: str(float(value))}
    if isinstance(value, (dict, Mapping)):
        plain = {_key(key): _tag(item) for key, item in value.items()}
        # A mapping that only looks like a tag is wrapped, so that it is not taken for one.
        return {_FLOAT: [plain[_FLOAT]]} if plain.keys() == {_FLOAT} else plain
    if isinstance(value, (list, tuple)):
        return [_tag(item) for item in value]
    if isinstance(value, (int, Integral)):
        return int(value)
    if isinstance(value, Real):
        return _tag(float(value))
    if type(value).__name__ in ("bool", "bool_"):  # numpy's, not worth importing numpy for
        return bool(value)
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is not text")
    return mend(key)


def _untag(value: dict[str, JSON]) -> JSON:
    if value.keys() != {_FLOAT}:
        return value
    inner = value[_FLOAT]
    return {_FLOAT: inner[0]} if isinstance(inner, list) else float(cast(str, inner))
