"""`homeostat log` and `homeostat explain`: what was seen, thought and done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.output import KIND_STYLES, JsonFlag, print_json, print_table
from homeostat.core.errors import ConfigError, HomeostatError, StoreError

if TYPE_CHECKING:
    from homeostat.store.protocol import Store

StoreOption = Annotated[
    Path | None, typer.Option("--store", metavar="FILE", envvar="HOMEOSTAT_STORE", help="The SQLite file of the log.")
]
RunOption = Annotated[str | None, typer.Option("--run", metavar="RUN", help="The newest run if left out.")]

DEFAULT_STORE = Path("homeostat.sqlite")
CONFIG_FILE = Path("homeostat.toml")


def log(
    store: StoreOption = None,
    run: RunOption = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only records of this kind; may be repeated."),
    ] = None,
    component: Annotated[str, typer.Option("--component", metavar="NAME", help="Only this component.")] = "",
    last: Annotated[int, typer.Option("--last", metavar="N", min=0, help="The newest N records; 0 for all.")] = 50,
    json: JsonFlag = False,
) -> None:
    """Print the log of a run: symptoms, diagnoses, proposals, rejections, actions, outcomes.

    Batches are left out unless asked for: there is one every few seconds.
    """
    from homeostat.store.explain import log_lines

    path = store_path(store)
    with open_log(path) as opened:
        name = run_name(opened, run, path)
        kinds = _checked_kinds(kind or _all_but_batches())
        records = opened.records(name, kinds=kinds, component=component, limit=last, newest_first=True)[::-1]
        if not records and component:
            _check_component(opened, name, component)
    if json:
        print_json([asdict(record) for record in records])
        return
    styles = [KIND_STYLES.get(record.kind, "") for record in records]
    print_table(("time", "id", "kind", "component", "what"), log_lines(records), styles=styles)


def explain(
    id: Annotated[str, typer.Argument(metavar="ID", help="An id from `homeostat log`, such as a-1.")],
    store: StoreOption = None,
    run: RunOption = None,
    json: JsonFlag = False,
) -> None:
    """Tell the whole story of one record, from the measurement to the outcome."""
    from homeostat.store import explain as words

    path = store_path(store)
    with open_log(path) as opened:
        name = run_name(opened, run, path)
        try:
            text = words.explain(opened, name, id)
        except StoreError:
            raise
        except HomeostatError as error:
            raise ConfigError(error.what, where=error.where, fix=error.fix) from None
        chain = opened.chain(name, id)
    if json:
        print_json({"run": name, "id": id, "text": text, "chain": [asdict(record) for record in chain]})
    else:
        print(text)


def store_path(given: Path | None) -> Path:
    """The log that was named, by option or environment; else the one of homeostat.toml, if there is such a file."""
    if given is not None:
        return given
    if not CONFIG_FILE.exists():
        return DEFAULT_STORE
    from homeostat import config

    return config.load().store


@contextmanager
def open_log(path: Path) -> Iterator[Store]:
    from homeostat.store.sqlite import SqliteStore

    if not path.exists():
        raise ConfigError(
            "there is no log here",
            where=str(path),
            fix="write one with `homeostat sim run E1 --store FILE`, then name it with --store or HOMEOSTAT_STORE",
        )
    store = SqliteStore(path, read_only=True)
    try:
        yield store
    finally:
        store.close()


def run_name(store: Store, wanted: str | None, path: Path) -> str:
    from homeostat.strict.toml_reading import nearest

    names = [info.name for info in store.runs()]
    if not names:
        raise ConfigError("the log is empty", where=str(path))
    if wanted is None:
        return names[-1]
    if wanted not in names:
        raise ConfigError(f"there is no run {wanted!r}", where=str(path), fix=nearest(wanted, names[-10:]))
    return wanted


def _all_but_batches() -> list[str]:
    from homeostat.core.records import BATCH, KINDS

    return [kind for kind in KINDS if kind != BATCH]


def _checked_kinds(kinds: list[str]) -> list[str]:
    from homeostat.core.records import KINDS
    from homeostat.strict.toml_reading import nearest

    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"there is no kind {kind!r}", where="--kind", fix=nearest(kind, KINDS))
    return kinds


def _check_component(store: Store, run: str, component: str) -> None:
    from homeostat.strict.toml_reading import nearest

    known = sorted({record.component for record in store.records(run) if record.component})
    if component not in known:
        raise ConfigError(
            f"no record of {run} is about {component!r}", where="--component", fix=nearest(component, known)
        )
