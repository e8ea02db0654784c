"""`homeostat token`: creates, lists, rotates and revokes the tokens of the dashboard and the API."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.output import JsonFlag, print_json, print_table, say
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.web.token_file import Role

app = typer.Typer(
    name="token", help="Create, list, rotate and revoke the tokens of the dashboard.", no_args_is_help=True
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the person or program.")]
TokensOption = Annotated[
    Path | None, typer.Option("--tokens", metavar="FILE", help="Token file. Default: this user's file.")
]
RoleOption = Annotated[
    str, typer.Option("--role", metavar="ROLE", help="Role: read, or operate to also give commands. Default: operate.")
]


@app.command("create")
def create(
    name: NameArgument, role: RoleOption = "operate", tokens: TokensOption = None, json: JsonFlag = False
) -> None:
    """Create a token and print it. It is shown only once, because the file stores only its hash."""
    from homeostat.web import token_file

    path = _path(tokens)
    _print_token(token_file.create(path, name, _role(role)), name, path, json)


@app.command("list")
def list_(tokens: TokensOption = None, json: JsonFlag = False) -> None:
    """List who has a token, with the role and the time of creation. It does not print the tokens."""
    from homeostat.web.token_file import read_entries

    path = _path(tokens)
    entries = read_entries(path) if path.exists() else []
    if json:
        people = [
            {"name": e.person.name, "role": e.person.role, "made": e.created or None, "hashed": not e.plain}
            for e in entries
        ]
        print_json({"file": str(path), "tokens": people})
        return
    rows = [(e.person.name, e.person.role, e.created or "unknown", "no" if e.plain else "yes") for e in entries]
    print_table(("name", "role", "made", "hashed"), rows)


@app.command("rotate")
def rotate(name: NameArgument, tokens: TokensOption = None, json: JsonFlag = False) -> None:
    """Replace a token with a new one and print it. The old token and its sessions stop working at once."""
    from homeostat.web import token_file

    path = _path(tokens)
    _print_token(token_file.rotate(path, name), name, path, json)


@app.command("revoke")
def revoke(name: NameArgument, tokens: TokensOption = None, json: JsonFlag = False) -> None:
    """Revoke the token of a person. The token and its sessions stop working at once, without a restart."""
    from homeostat.web import token_file

    path = _path(tokens)
    token_file.revoke(path, name)
    if json:
        print_json({"file": str(path), "name": name})
    else:
        print(f"the token of {name} is no longer valid")


@app.command("hash")
def hash_(tokens: TokensOption = None, json: JsonFlag = False) -> None:
    """Replace plain-text tokens, as earlier versions stored them, with their hashes. The tokens stay valid."""
    from homeostat.web import token_file

    path = _path(tokens)
    count = token_file.hash_plain(path)
    if json:
        print_json({"file": str(path), "hashed": count})
    else:
        print(f"{count} token{'' if count == 1 else 's'} replaced with {'its hash' if count == 1 else 'their hashes'}")


def _print_token(token: str, name: str, path: Path, json: bool) -> None:
    if json:
        print_json({"file": str(path), "name": name, "token": token})
        return
    say(f"the token of {name}; it is not shown again:")
    print(token)


def _path(tokens: Path | None) -> Path:
    from homeostat.web.http_server import own_file

    return tokens if tokens is not None else own_file()


def _role(text: str) -> Role:
    from homeostat.strict.toml_reading import nearest
    from homeostat.web.token_file import ROLES

    for role in ROLES:
        if role == text:
            return role
    raise ConfigError(f"unknown role {text!r}", where="--role", fix=nearest(text, ROLES))
