"""`polynya functions [NAME]`: the functions of Polynya that expressions may call, offline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from polynya.cli.context import Context
from polynya.cli.options import usage_error
from polynya.model.documents.problems import suggest

if TYPE_CHECKING:
    from polynya.transform.functions.base import Function


def functions(name: str | None = None, *, snippets: bool = False, context: Context) -> None:
    """Show the functions of Polynya that expressions may call; with a name, all about one.

    For completion in an editor that knows the snippets of VS Code, send those of `--snippets` to
    the file `.vscode/polynya.code-snippets`.

    For example: `polynya functions substring`.

    Args:
        name: a function, with or without `polynya.` before it.
        snippets: print them as snippets for an editor.
        context: given by `main`.
    """
    found = _chosen(name)
    if snippets:
        content = _snippets([one for one in found if one.is_callable])
        context.output.result("snippets", {"snippets": content}, json.dumps(content, indent=2))
        return
    for one in found:
        data = {
            "name": one.name,
            "call": one.written,
            "signature": one.signature,
            "family": one.family,
            "about": one.about,
            "callable": one.is_callable,
            "examples": [{"call": each.call, "gives": each.gives} for each in one.examples],
        }
        text = f"{one.signature}  {_first(one)}" if name is None else _full(one)
        context.output.result("function", data, text)


def _chosen(name: str | None) -> list[Function]:
    # Start-up time.
    from polynya.transform.functions.table import FUNCTIONS, QUALIFIER

    if name is None:
        return list(FUNCTIONS.values())
    wanted = name.strip().lower().removeprefix(f"{QUALIFIER}.")
    if wanted not in FUNCTIONS:
        hint = (suggest(wanted, list(FUNCTIONS)) or "").partition(" allowed here:")[0]
        raise usage_error(
            f"Polynya has no function `{name[:60]}`",
            hint if hint.startswith("did") else "`polynya functions` lists all",
        )
    return [FUNCTIONS[wanted]]


def _snippets(found: list[Function]) -> dict[str, Any]:
    """Snippets in the form of VS Code: the parameters are the places to fill in."""
    return {
        one.signature: {
            "prefix": sorted({one.name, one.written}),
            "scope": "yaml,json",
            "body": f"{one.written}({_holes(one)})",
            "description": one.about,
        }
        for one in found
    }


def _holes(one: Function) -> str:
    needed = [each for each in one.parameters if not each.endswith("?")]
    return ", ".join(f"${{{at}:{each.rstrip('+')}}}" for at, each in enumerate(needed, start=1))


def _first(one: Function) -> str:
    """The first sentence of what is told of a function."""
    return one.about.partition(". ")[0].rstrip(".") + "."


def _full(one: Function) -> str:
    lines = [f"{one.signature}   ({one.family})", "", one.about]
    if one.examples:
        lines += ["", *(f"  {each.call} gives {each.gives}" for each in one.examples)]
    return "\n".join(lines)
