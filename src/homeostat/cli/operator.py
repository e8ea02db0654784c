"""A person's word to a running loop: `pause`, `resume`, `approve`, `revert` and `apply`."""

from __future__ import annotations

import getpass
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homeostat.cli.log import StoreOption, store_path
from homeostat.cli.output import JsonFlag, print_json
from homeostat.core.errors import ConfigError, HomeostatError

if TYPE_CHECKING:
    from homeostat.core.configuration import Value
    from homeostat.core.records import Record
    from homeostat.store.sqlite import SqliteStore

RunOption = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="Which run; may be left out if only one is running.")
]
WhyOption = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for the log.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be asked, and ask nothing.")]
ANSWER_LIMIT_S = 15.0
LOOK_AGAIN_S = 0.2

app = typer.Typer(name="apply", help="Act by hand, within the bounds and one action at a time.", no_args_is_help=True)


class UnansweredError(HomeostatError):
    """Nobody took the order up, or it was refused."""


def pause(store: StoreOption = None, run: RunOption = None, why: WhyOption = "", json: JsonFlag = False) -> None:
    """Pause regulation: the loop goes on watching, and changes nothing."""
    _give("pause", store, run, why, json)


def resume(store: StoreOption = None, run: RunOption = None, why: WhyOption = "", json: JsonFlag = False) -> None:
    """Resume regulation."""
    _give("resume", store, run, why, json)


def approve(
    id: Annotated[str, typer.Argument(metavar="ID", help="The advice, such as v-1.")],
    store: StoreOption = None,
    run: RunOption = None,
    why: WhyOption = "",
    json: JsonFlag = False,
) -> None:
    """Approve an advised action: it is done now."""
    _give("approve", store, run, why, json, target=id)


def revert(
    id: Annotated[str, typer.Argument(metavar="[ID]", help="The action, such as a-1; the last one.")] = "",
    store: StoreOption = None,
    run: RunOption = None,
    why: WhyOption = "",
    json: JsonFlag = False,
) -> None:
    """Take back the last action, or another one that is still being judged."""
    _give("revert", store, run, why, json, target=id)


@app.command("scale")
def scale(
    executors: Annotated[int, typer.Option("--executors", min=1, help="How many there shall be.")],
    store: StoreOption = None,
    run: RunOption = None,
    why: WhyOption = "",
    dry_run: DryRun = False,
    json: JsonFlag = False,
) -> None:
    """Set the number of executors."""
    from homeostat.core.configuration import EXECUTORS_KNOB

    _give("apply", store, run, why, json, values={str(EXECUTORS_KNOB): executors}, dry_run=dry_run)


@app.command("set")
def set_(
    settings: Annotated[list[str], typer.Argument(metavar="KNOB=VALUE...", help="Such as state_partitions.words=16.")],
    store: StoreOption = None,
    run: RunOption = None,
    why: WhyOption = "",
    dry_run: DryRun = False,
    json: JsonFlag = False,
) -> None:
    """Set any knobs; `homeostat status` lists them."""
    _give("apply", store, run, why, json, values=dict(map(_setting, settings)), dry_run=dry_run)


@app.command("resolver")
def resolver(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Such as scale-up; the dashboard lists them.")],
    store: StoreOption = None,
    run: RunOption = None,
    why: WhyOption = "",
    dry_run: DryRun = False,
    json: JsonFlag = False,
) -> None:
    """Run one resolver now, against the diagnoses that stand, and do the best that it proposes."""
    _give("resolve", store, run, why, json, target=name, dry_run=dry_run)


def _setting(text: str) -> tuple[str, Value]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        raise ConfigError(f"cannot read {text!r}", where="apply set", fix="write KNOB=VALUE: executors.app=6") from None
    return name, int(number) if number.is_integer() else number


def _give(
    command: str,
    named: Path | None,
    run: str | None,
    why: str,
    json: bool,
    *,
    target: str = "",
    values: dict[str, Value] | None = None,
    dry_run: bool = False,
) -> None:
    from homeostat.runtime.orders import order
    from homeostat.store.sqlite import SqliteStore

    path = store_path(named)
    if not path.exists():
        raise ConfigError("there is no log here", where=str(path), fix="name it with --store or HOMEOSTAT_STORE")
    store = SqliteStore(path, read_only=dry_run)
    try:
        name = _running(store, run, path)
        asked = order(command, by=getpass.getuser(), now_s=time.time(), why=why, target=target, values=values)
        changes = _changes(store, name, values or {})
        if dry_run:
            _require_knobs(store, name, values or {})
            _told({"run": name, "order": dict(asked.body), "changes": changes, "done": False}, json)
            return
        store.append(name, [asked])
        answers = _answers(store, name, asked.id)
    finally:
        store.close()
    refused = [record for record in answers if record.kind == "rejection"]
    if not answers or refused:
        what = refused[0].text if refused else f"no manager has answered within {ANSWER_LIMIT_S:.0f} s"
        raise UnansweredError(what, where=name, fix="" if refused else "is it running? see `homeostat status`")
    records = [{"id": record.id, "kind": record.kind, "text": record.text} for record in answers]
    _told({"run": name, "order": dict(asked.body), "changes": changes, "done": True, "records": records}, json)


def _told(answer: dict[str, Any], json: bool) -> None:
    if json:
        print_json(answer)
        return
    lines = [f"{each['id']}  {each['text']}" for each in answer.get("records", ())]
    wanted = " ".join(filter(None, (answer["order"]["command"], answer["order"]["target"])))
    print("\n".join(lines or [f"would ask {answer['run']}: {wanted}", *answer["changes"]]))


def _running(store: SqliteStore, wanted: str | None, path: Path) -> str:
    """The run that was named; else the only one that has been heard of lately, or the only one that there is."""
    from homeostat.strict.toml_reading import nearest
    from homeostat.views.overview import SILENT_S

    infos = store.runs()
    names = [info.name for info in infos]
    if wanted is not None:
        if wanted not in names:
            raise ConfigError(f"there is no run {wanted!r}", where=str(path), fix=nearest(wanted, names[-10:]))
        return wanted
    now_s = time.time()
    alive = [info.name for info in infos if now_s - info.last_s < 2 * SILENT_S]
    if not alive and len(names) == 1:
        return names[0]
    if len(alive) != 1:
        found = ", ".join(alive[:5]) or "none"
        raise ConfigError("say which run is meant", where="--run", fix=f"running now: {found}")
    return alive[0]


def _changes(store: SqliteStore, run: str, values: dict[str, Value]) -> list[str]:
    from homeostat.store.wording import settings

    return settings(dict(values), _observed(store, run))


def _require_knobs(store: SqliteStore, run: str, values: dict[str, Value]) -> None:
    """A manager would refuse them; where nothing is known of the run, only it can tell."""
    observed = _observed(store, run)
    missing = [name for name in values if observed and name not in observed]
    if missing:
        raise ConfigError(f"{missing[0]} cannot be set here", where=run, fix=f"there are: {', '.join(observed)}")


def _observed(store: SqliteStore, run: str) -> dict[str, Any]:
    from homeostat.store.present import load_present

    return dict(load_present(store, run).observed)


def _answers(store: SqliteStore, run: str, id: str) -> list[Record]:
    """What the manager wrote about the order, at once or within the limit; none if there is no manager."""
    give_up_s = time.monotonic() + ANSWER_LIMIT_S
    while time.monotonic() < give_up_s:
        found = [record for record in store.chain(run, id) if record.kind in ("operator", "rejection", "action")]
        if found:
            return found
        time.sleep(LOOK_AGAIN_S)
    return []
