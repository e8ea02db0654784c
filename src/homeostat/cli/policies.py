"""`homeostat policies`: the policies that you can choose."""

from __future__ import annotations

from homeostat.cli.output import JsonFlag, print_json, print_table


def policies(json: JsonFlag = False) -> None:
    """List the available policies and what each one does."""
    from homeostat.policies import registry

    rows = [(name, registry.describe(name)) for name in registry.names()]
    if json:
        print_json([{"name": name, "description": text} for name, text in rows])
    else:
        print_table(("policy", "what it does"), rows)
