"""Commands that an operator gives to a running manager: `pause`, `resume`, `approve`, `revert` and `apply`."""

from __future__ import annotations

import getpass
import socket
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from homeostat.cli.find_application import require_log, store_path
from homeostat.cli.log import StoreOption
from homeostat.cli.output import JsonFlag, print_json
from homeostat.core.errors import ConfigError, HomeostatError

if TYPE_CHECKING:
    from homeostat.core.configuration import Value
    from homeostat.core.records import Record
    from homeostat.store.address import LogAddress
    from homeostat.store.sql_store import SqlStore

RunOption = Annotated[
    str | None,
    typer.Option("--run", metavar="RUN", help="Run to send the command to. Needed only if several are running."),
]
WhyOption = Annotated[str, typer.Option("--why", metavar="TEXT", help="Reason to record in the log.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would change, without changing anything.")]
ANSWER_LIMIT_S = 15.0
LOOK_AGAIN_S = 0.2

app = typer.Typer(name="apply", help="Change knobs by hand. Bounds and guards still apply.", no_args_is_help=True)


class UnansweredError(HomeostatError):
    """No manager answered, or the manager rejected the command."""


def pause(store: StoreOption = None, run: RunOption = None, why: WhyOption = "", json: JsonFlag = False) -> None:
    """Pause regulation. Homeostat keeps watching but takes no action."""
    _send("pause", store, run, why, json)


def resume(store: StoreOption = None, run: RunOption = None, why: WhyOption = "", json: JsonFlag = False) -> None:
    """Resume regulation after a pause."""
    _send("resume", store, run, why, json)


def approve(
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the advice, such as v-1.")],
    store: StoreOption = None,
    run: RunOption = None,
    why: WhyOption = "",
    json: JsonFlag = False,
) -> None:
    """Carry out an action that Homeostat has advised."""
    _send("approve", store, run, why, json, target=id)


def revert(
    id: Annotated[
        str, typer.Argument(metavar="[ID]", help="Id of the action, such as a-1. Default: the last action.")
    ] = "",
    store: StoreOption = None,
    run: RunOption = None,
    why: WhyOption = "",
    json: JsonFlag = False,
) -> None:
    """Undo the last action, or another one that has not been judged yet."""
    _send("revert", store, run, why, json, target=id)


@app.command("scale")
def scale(
    executors: Annotated[int, typer.Option("--executors", min=1, help="Number of executors to run.")],
    store: StoreOption = None,
    run: RunOption = None,
    why: WhyOption = "",
    dry_run: DryRun = False,
    json: JsonFlag = False,
) -> None:
    """Set the number of executors."""
    from homeostat.core.configuration import EXECUTORS_KNOB

    _send("apply", store, run, why, json, values={str(EXECUTORS_KNOB): executors}, dry_run=dry_run)


@app.command("set")
def set_(
    settings: Annotated[
        list[str], typer.Argument(metavar="KNOB=VALUE...", help="Knobs to set, such as state_partitions.words=16.")
    ],
    store: StoreOption = None,
    run: RunOption = None,
    why: WhyOption = "",
    dry_run: DryRun = False,
    json: JsonFlag = False,
) -> None:
    """Set one or more knobs. `homeostat status` lists them."""
    _send("apply", store, run, why, json, values=dict(map(_setting, settings)), dry_run=dry_run)


@app.command("resolver")
def resolver(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Resolver to run, such as scale-up. The dashboard lists them.")
    ],
    store: StoreOption = None,
    run: RunOption = None,
    why: WhyOption = "",
    dry_run: DryRun = False,
    json: JsonFlag = False,
) -> None:
    """Run one resolver on the current diagnoses, and carry out its best proposal."""
    _send("resolve", store, run, why, json, target=name, dry_run=dry_run)


def _setting(text: str) -> tuple[str, Value]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        raise ConfigError(
            f"cannot parse {text!r}", where="apply set", fix="write KNOB=VALUE, such as executors.app=6"
        ) from None
    return name, int(number) if number.is_integer() else number


def _send(
    command: str,
    store_option: str | None,
    run: str | None,
    why: str,
    json: bool,
    *,
    target: str = "",
    values: dict[str, Value] | None = None,
    dry_run: bool = False,
) -> None:
    from homeostat.runtime.orders import order
    from homeostat.store.opening import open_store

    path = require_log(store_path(store_option))
    store = open_store(path, read_only=dry_run)
    try:
        name = _running(store, run, path)
        request = order(
            command,
            by=getpass.getuser(),
            now_s=time.time(),
            why=why,
            target=target,
            values=values,
            role="operate",
            origin=f"command line on {socket.gethostname()}",
        )
        changes = _changes(store, name, values or {})
        if dry_run:
            _require_knobs(store, name, values or {})
            _print_answer({"run": name, "order": _order_json(request), "changes": changes, "done": False}, json)
            return
        store.append(name, [request])
        answers = _answers(store, name, request.id)
    finally:
        store.close()
    rejections = [record for record in answers if record.kind == "rejection"]
    if not answers or rejections:
        what = rejections[0].text if rejections else f"no manager answered within {ANSWER_LIMIT_S:.0f} s"
        raise UnansweredError(
            what, where=name, fix="" if rejections else "run `homeostat status` to see if it is running"
        )
    records = [{"id": record.id, "kind": record.kind, "text": record.text} for record in answers]
    _print_answer(
        {"run": name, "order": _order_json(request), "changes": changes, "done": True, "records": records}, json
    )


def _order_json(request: Record) -> dict[str, Any]:
    from homeostat.core.records import OrderContent

    order = request.content_as(OrderContent)
    assert order is not None
    return {
        "command": order.command,
        "by": order.by,
        "why": order.why,
        "target": order.target,
        "values": dict(order.values),
    }


def _print_answer(answer: dict[str, Any], json: bool) -> None:
    if json:
        print_json(answer)
        return
    lines = [f"{each['id']}  {each['text']}" for each in answer.get("records", ())]
    request = " ".join(filter(None, (answer["order"]["command"], answer["order"]["target"])))
    print("\n".join(lines or [f"would send to {answer['run']}: {request}", *answer["changes"]]))


def _running(store: SqlStore, name: str | None, path: LogAddress) -> str:
    """The named run; else the only one with recent records, or the only one in the log."""
    from homeostat.log_views.overview import SILENT_S
    from homeostat.strict.toml_reading import nearest

    infos = store.runs()
    names = [info.name for info in infos]
    if name is not None:
        if name not in names:
            raise ConfigError(f"the log has no run {name!r}", where=str(path), fix=nearest(name, names[-10:]))
        return name
    now_s = time.time()
    alive = [info.name for info in infos if now_s - info.last_s < 2 * SILENT_S]
    if not alive and len(names) == 1:
        return names[0]
    if len(alive) != 1:
        if not alive:
            raise ConfigError("no run in this log is active", where=str(path), fix="name one with --run")
        raise ConfigError("several runs are active", where="--run", fix=f"choose one: {', '.join(alive[:5])}")
    return alive[0]


def _changes(store: SqlStore, run: str, values: dict[str, Value]) -> list[str]:
    from homeostat.core.wording import settings

    return settings(dict(values), _observed_values(store, run))


def _require_knobs(store: SqlStore, run: str, values: dict[str, Value]) -> None:
    """Reject unknown knobs, as the manager would. If the run has not reported its knobs, accept any."""
    observed = _observed_values(store, run)
    missing = [name for name in values if observed and name not in observed]
    if missing:
        raise ConfigError(f"{missing[0]} cannot be set here", where=run, fix=f"knobs: {', '.join(observed)}")


def _observed_values(store: SqlStore, run: str) -> dict[str, Any]:
    from homeostat.store.present import load_present

    return dict(load_present(store, run).observed)


def _answers(store: SqlStore, run: str, id: str) -> list[Record]:
    """The manager's records about the command, once there are any; empty if the time limit passes."""
    give_up_s = time.monotonic() + ANSWER_LIMIT_S
    while time.monotonic() < give_up_s:
        answers = [record for record in store.chain(run, id) if record.kind in ("operator", "rejection", "action")]
        if answers:
            return answers
        time.sleep(LOOK_AGAIN_S)
    return []
