"""Results of benches that are kept as files: what a bench measured, with a head that says how it was measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from homeostat.core.errors import ConfigError
from homeostat.lab.bench.circumstances import Commit, Machine

SUFFIX, NOTE_SUFFIX = ".json", ".md"
PICTURE_SUFFIXES = (".svg", ".png")
_BESIDE = ((NOTE_SUFFIX,), PICTURE_SUFFIXES)
_KEEP_AGAIN = "keep the result again with --keep, or remove the file"


@dataclass(frozen=True, slots=True)
class KeptResult:
    """`measured_on` is the UTC date on which the bench began. `result` is what the bench prints with --json.

    `commit` is None for a package that was not imported from its Git repository.
    """

    __pydantic_config__: ClassVar[Any] = ConfigDict(extra="forbid")

    bench: str
    command: str
    measured_on: date
    took_s: float
    version: str
    commit: Commit | None
    seeds: Mapping[str, Any]
    machine: Machine
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A kept result, with the note that explains it and the picture that shows it, if they are beside it."""

    path: Path
    kept: KeptResult
    note: str = ""
    picture: Path | None = None


_ADAPTER: TypeAdapter[KeptResult] = TypeAdapter(KeptResult)


def file_for(bench: str, target: Path) -> Path:
    """The file in which a result of this bench is kept, if `target` is a directory or a file.

    The name of a file begins with that of the bench, so that one bench can have several results.
    """
    if target.suffix != SUFFIX:
        return target / f"{bench}{SUFFIX}"
    if not _belongs_to(target.stem, bench):
        raise ConfigError(
            f"the name of this file does not begin with the name of the bench, {bench!r}",
            where=str(target),
            fix=f"name it {bench}{SUFFIX} or {bench}-something{SUFFIX}",
        )
    return target


def write(kept: KeptResult, path: Path) -> None:
    """Write the file, so that a reader never sees half of it."""
    text = json.dumps({**asdict(kept), "measured_on": kept.measured_on.isoformat()}, indent=1, ensure_ascii=False)
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot write the result: {error.strerror}", where=str(path)) from error


def read_all(directory: Path, benches: Sequence[str]) -> list[ResultFile]:
    """The kept results in a directory, in the order of `benches` and then of their names.

    Every file must be a result of a known bench, or the note or picture of one. Hidden files are ignored.
    """
    try:
        paths = sorted(path for path in directory.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise ConfigError(
            f"cannot read the results: {error.strerror}", where=str(directory), fix="run a bench with --keep first"
        ) from error
    results = [path for path in paths if path.suffix not in (NOTE_SUFFIX, *PICTURE_SUFFIXES)]
    stems = {path.stem for path in results}
    notes, pictures = ({path.stem: path for path in paths if path.suffix in kind} for kind in _BESIDE)
    for path in (*notes.values(), *pictures.values()):
        if path.stem not in stems:
            raise ConfigError("there is no result beside this file", where=str(path), fix=f"keep {path.stem}{SUFFIX}")
    files = [
        ResultFile(path, read(path, benches), _read_note(notes.get(path.stem)), pictures.get(path.stem))
        for path in results
    ]
    return sorted(files, key=lambda file: (benches.index(file.kept.bench), file.path.name))


def read(path: Path, benches: Sequence[str]) -> KeptResult:
    if path.suffix != SUFFIX:
        raise ConfigError("this is not a result of a bench", where=str(path), fix="move it to another directory")
    try:
        kept = _ADAPTER.validate_json(path.read_bytes(), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        what = f"{place}: {first['msg']}" if place else first["msg"]
        raise ConfigError(f"this is not a result of a bench: {what}", where=str(path), fix=_KEEP_AGAIN) from None
    except OSError as error:
        raise ConfigError(f"cannot read the result: {error.strerror}", where=str(path)) from error
    if kept.bench not in benches:
        raise ConfigError(f"unknown bench {kept.bench!r}", where=str(path), fix=_KEEP_AGAIN)
    if not _belongs_to(path.stem, kept.bench):
        raise ConfigError(
            f"the file has the result of the bench {kept.bench!r}",
            where=str(path),
            fix=f"name it {kept.bench}{SUFFIX} or {kept.bench}-something{SUFFIX}",
        )
    return kept


def _belongs_to(stem: str, bench: str) -> bool:
    return stem == bench or stem.startswith(f"{bench}-")


def _read_note(path: Path | None) -> str:
    return "" if path is None else path.read_text(encoding="utf-8").strip()
