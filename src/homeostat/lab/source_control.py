"""The control file that changes the experiment source while it runs, and the number of rows at a given time."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite
from pathlib import Path
from typing import Any

from homeostat.core.errors import ConfigError
from homeostat.lab.load_profile import Load, Profile, checked_load

_WHERE = "homeostat source"

# The name of the source in `read_stream`.
FORMAT = "homeostat"


@dataclass(frozen=True, slots=True)
class Control:
    """`rows_per_trigger` limits a batch in addition to the limit of the query (None or 0: no additional limit).

    `load` has pairs (seconds since the source's start, factor): see Profile.rows_until. `first_share` is the share of a
    batch in its first partition (None: the option applies, 0: the same as in the others).
    """

    rows_per_trigger: int | None = None
    load: Load = ()
    first_share: float | None = None


class ControlFile:
    """Reads a control file. While it is missing or damaged, the last values apply."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._last = Control()

    def read(self) -> Control:
        with suppress(OSError, ValueError, TypeError):
            self._last = _parse(Path(self._path).read_text(encoding="utf-8"))
        return self._last


def write_control(
    path: str | Path,
    *,
    rows_per_trigger: float | None = None,
    load: Sequence[Sequence[float]] | None = None,
    first_share: float | None = None,
) -> None:
    """Change values of the source that reads this file. Others stay as they are. The file is replaced in one step."""
    with _changing(Path(path)) as values:
        if rows_per_trigger is not None:
            values["rows_per_trigger"] = int(rows_per_trigger) if isfinite(rows_per_trigger) else 0
        if load is not None:
            values["load"] = checked_load(load)
        if first_share is not None:
            values["first_share"] = _share(first_share)


def add_load_step(path: str | Path, from_s: float, factor: float) -> None:
    """Multiply the load by `factor` from that second on. Earlier steps stay."""
    with _changing(Path(path)) as values:
        earlier = [step for step in values.get("load", ()) if step[0] < from_s]
        values["load"] = checked_load([*earlier, (from_s, factor)])


@contextmanager
def _changing(path: Path) -> Iterator[dict[str, Any]]:
    """The file's values, to be changed in place. A lock keeps two writers from overwriting each other's changes."""
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        values = _values(path)
        yield values
        draft = path.with_name(f".{path.name}.draft")
        draft.write_text(json.dumps(values), encoding="utf-8")
        draft.replace(path)
    finally:
        os.close(directory)


def _values(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        _parse(text)
    except (OSError, ValueError, TypeError):
        return {}
    values: dict[str, Any] = json.loads(text)
    return values


def _parse(text: str) -> Control:
    values = json.loads(text)
    if not isinstance(values, dict):
        raise ValueError("expected an object")
    rows = values.get("rows_per_trigger")
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 0):
        raise ValueError(f"rows_per_trigger = {rows!r}")
    share = values.get("first_share")
    return Control(rows, checked_load(values.get("load", ())), None if share is None else _share(share))


def _share(value: float | str) -> float:
    share = float(value)
    if not 0 <= share <= 1:
        raise ValueError(f"first_share = {value!r}")
    return share


@dataclass(frozen=True, slots=True)
class Feed:
    """The source's options, parsed and checked. Times are seconds since the epoch."""

    profile: Profile
    partitions: int
    rows_per_trigger: int
    control: str
    start_s: float | None
    first_share: float = 0.0

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Feed:
        by_name = {name.lower(): value for name, value in options.items()}
        if "profile" not in by_name:
            raise ConfigError("the option 'profile' is missing", where=_WHERE, fix="set it to Profile.to_json()")
        return cls(
            profile=Profile.from_json(by_name["profile"]),
            partitions=_whole(by_name, "partitions", 1, at_least=1),
            rows_per_trigger=_whole(by_name, "rowsPerTrigger", 0, at_least=0),
            control=by_name.get("control", ""),
            start_s=_moment(by_name),
            first_share=_first_share(by_name),
        )

    @property
    def bound(self) -> float:
        """The most rows that the control file allows in the next batch, regardless of the limit of the query."""
        return self._control.rows_per_trigger or inf

    def cut(self, first: int, rows: int) -> list[int]:
        """The rows where the partitions of a batch begin, and where the last one ends."""
        changed_share, count = self._control.first_share, self.partitions
        share = self.first_share if changed_share is None else changed_share
        if share == 0 or count == 1:
            return [first + rows * number // count for number in range(count + 1)]
        own = round(share * rows)
        return [first, *(first + own + (rows - own) * number // (count - 1) for number in range(count))]

    def latest_row(self, now_s: float, started_s: float) -> int:
        """The number of rows that have arrived by `now_s`."""
        return self.profile.rows_until(now_s - started_s, self._control.load)

    def arrival_s(self, row: int, now_s: float, started_s: float) -> float:
        """When that row arrived."""
        return started_s + self.profile.arrival_s(row, now_s - started_s, self._control.load)

    @property
    def _control(self) -> Control:
        return _follow(self.control).read()


@lru_cache(maxsize=64)
def _follow(path: str) -> ControlFile:
    return ControlFile(path)


def latest_row(options: Mapping[str, str], now_s: float, started_s: float) -> int:
    """The number of rows that have arrived at a source with these options, without a request to Spark.

    `started_s` is in every offset of the source.
    """
    return Feed.from_options(options).latest_row(now_s, started_s)


def _whole(options: Mapping[str, str], name: str, default: int, *, at_least: int) -> int:
    text = options.get(name.lower(), str(default))
    if not text.isdecimal() or int(text) < at_least:
        raise ConfigError(f"{name} = {text!r} must be a whole number of at least {at_least}", where=_WHERE)
    return int(text)


def _first_share(options: Mapping[str, str]) -> float:
    try:
        return _share(options.get("firstshare", "0"))
    except ValueError as error:
        raise ConfigError(f"firstShare = {options['firstshare']!r} must be between 0 and 1", where=_WHERE) from error


def _moment(options: Mapping[str, str]) -> float | None:
    if "start" not in options:
        return None
    try:
        start_s = float(options["start"])
    except ValueError:
        start_s = inf
    if not isfinite(start_s):
        raise ConfigError(f"start = {options['start']!r} must be a number of seconds", where=_WHERE)
    return start_s
