"""`homeostat log` and `homeostat explain`: what Homeostat detected, decided and did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli import log_upkeep as upkeep
from homeostat.cli.find_application import StoreOption as StoreOption
from homeostat.cli.find_application import require_log, store_path
from homeostat.cli.output import KIND_STYLES, JsonFlag, print_json, print_table, say
from homeostat.core.errors import ConfigError, HomeostatError, StoreError

if TYPE_CHECKING:
    from homeostat.store.address import LogAddress
    from homeostat.store.protocol import Store

RunOption = Annotated[str | None, typer.Option("--run", metavar="RUN", help="Run to read. Default: the newest run.")]
MOST_RUNS_NAMED = 3
# How many records are searched for names of components, to suggest one in an error message. A choice.
MOST_SEARCHED = 10_000


app = typer.Typer(name="log", no_args_is_help=False)


@app.callback(invoke_without_command=True)
def log(
    context: typer.Context,
    store: StoreOption = None,
    run: RunOption = None,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Print only records of this kind. Repeat for several kinds."),
    ] = None,
    component: Annotated[
        str, typer.Option("--component", metavar="NAME", help="Print only records about this component.")
    ] = "",
    last: Annotated[
        int, typer.Option("--last", metavar="N", min=0, help="Print the newest N records; 0 prints all of them.")
    ] = 50,
    json: JsonFlag = False,
) -> None:
    """Print the log of a run: symptoms, diagnoses, proposals, actions and their outcomes.

    Batches are hidden because there is one every few seconds. Show them with --kind batch, or their summaries with
    --kind minute and --kind hour.
    """
    if context.invoked_subcommand is not None:
        return
    from homeostat.store.explain import log_lines

    path = store_path(store)
    with open_log(path) as log:
        name = run_name(log, run, path)
        kinds = _checked_kinds(kind or _listed_kinds())
        records = log.records(name, kinds=kinds, component=component, limit=last, newest_first=True)[::-1]
        if not records and component:
            _check_component(log, name, component)
    if json:
        print_json([asdict(record) for record in records])
        return
    styles = [KIND_STYLES.get(record.kind, "") for record in records]
    print_table(("time", "id", "kind", "component", "what"), log_lines(records), styles=styles)


def explain(
    id: Annotated[str, typer.Argument(metavar="ID", help="Record id from `homeostat log`, such as a-1.")],
    store: StoreOption = None,
    run: RunOption = None,
    json: JsonFlag = False,
) -> None:
    """Explain one record: what led to it, and what the result was."""
    from homeostat.store import explain as words

    path = store_path(store)
    with open_log(path) as log:
        name = run_name(log, run, path)
        try:
            text = words.explain(log, name, id)
        except StoreError:
            raise
        except HomeostatError as error:
            raise ConfigError(error.what, where=error.where, fix=error.fix) from None
        chain = log.chain(name, id)
    if json:
        print_json({"run": name, "id": id, "text": text, "chain": [asdict(record) for record in chain]})
    else:
        print(text)


@contextmanager
def open_log(path: LogAddress) -> Iterator[Store]:
    from homeostat.store.opening import open_store

    fix = "name a log with --store or HOMEOSTAT_STORE, or write one: `homeostat sim run E1 --store FILE`"
    store = open_store(require_log(path, fix), read_only=True)
    try:
        yield store
    finally:
        store.close()


def run_name(store: Store, name: str | None, path: LogAddress) -> str:
    """The named run, or else the newest one. In that case, a message on stderr lists the other runs."""
    from homeostat.strict.toml_reading import nearest

    names = [info.name for info in store.runs()]
    if not names:
        raise ConfigError("the log is empty", where=str(path), fix="wait until the application has finished a batch")
    if name is None:
        _name_other_runs(names[-1], names[-2::-1])
        return names[-1]
    if name not in names:
        raise ConfigError(f"the log has no run {name!r}", where=str(path), fix=nearest(name, names[-10:]))
    return name


app.command("prune")(upkeep.prune)
app.command("compact")(upkeep.compact)


def _name_other_runs(chosen: str, others: Sequence[str]) -> None:
    if not others:
        return
    more = len(others) - MOST_RUNS_NAMED
    rest = f" and {more} more" if more > 0 else ""
    say(f"homeostat: showing run {chosen}; --run chooses another: {', '.join(others[:MOST_RUNS_NAMED])}{rest}")


def _listed_kinds() -> list[str]:
    from homeostat.core.records import LISTED_KINDS

    return list(LISTED_KINDS)


def _checked_kinds(kinds: list[str]) -> list[str]:
    from homeostat.core.records import KINDS
    from homeostat.strict.toml_reading import nearest

    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"unknown kind of record {kind!r}", where="--kind", fix=nearest(kind, KINDS))
    return kinds


def _check_component(store: Store, run: str, component: str) -> None:
    from homeostat.strict.toml_reading import nearest

    records = store.records(run, kinds=_listed_kinds(), limit=MOST_SEARCHED, newest_first=True)
    components = sorted({record.component for record in records if record.component})
    if component not in components:
        raise ConfigError(
            f"run {run} has no records about {component!r}", where="--component", fix=nearest(component, components)
        )
