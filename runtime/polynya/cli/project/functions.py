"""`polynya functions [NAME]`: the functions of Polynya that expressions may call, offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polynya.cli.context import Context
from polynya.cli.options import usage_error
from polynya.model.documents.problems import suggest

if TYPE_CHECKING:
    from polynya.transform.functions.base import Function


def functions(name: str | None = None, *, context: Context) -> None:
    """Show the functions of Polynya that expressions may call; with a name, all about one.

    For example: `polynya functions substring`.

    Args:
        name: a function, with or without `polynya.` before it.
        context: given by `main`.
    """
    # Start-up time.
    from polynya.transform.functions.table import FUNCTIONS, QUALIFIER, called

    found = list(FUNCTIONS.values())
    if name is not None:
        wanted = name.strip().lower().removeprefix(f"{QUALIFIER}.")
        if wanted not in FUNCTIONS:
            hint = (suggest(wanted, list(FUNCTIONS)) or "").partition(" allowed here:")[0]
            raise usage_error(
                f"Polynya has no function `{name[:60]}`",
                hint if hint.startswith("did") else "`polynya functions` lists all",
            )
        found = [FUNCTIONS[wanted]]
    for one in found:
        data = {
            "name": one.name,
            "call": called(one.name),
            "signature": one.signature,
            "family": one.family,
            "about": one.about,
            "callable": one.build is not None,
            "examples": [{"call": each.call, "gives": each.gives} for each in one.examples],
        }
        signature = one.signature.replace(one.name, called(one.name), 1)
        text = f"{signature}  {_first(one)}" if name is None else _full(one, signature)
        context.output.result("function", data, text)


def _first(one: Function) -> str:
    """The first sentence of what is told of a function."""
    return one.about.partition(". ")[0].rstrip(".") + "."


def _full(one: Function, signature: str) -> str:
    lines = [f"{signature}   ({one.family})", "", one.about]
    if one.examples:
        lines += ["", *(f"  {each.call} gives {each.gives}" for each in one.examples)]
    return "\n".join(lines)
