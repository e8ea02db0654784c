"""`homeostat policies`: what there is to choose from."""

from __future__ import annotations

from homeostat.cli.output import JsonFlag, print_json, print_table


def policies(json: JsonFlag = False) -> None:
    """List the policies, one line each."""
    from homeostat.policies import registry

    known = [(name, registry.describe(name)) for name in registry.names()]
    if json:
        print_json([{"name": name, "description": text} for name, text in known])
    else:
        print_table(("policy", "what it does"), known)
