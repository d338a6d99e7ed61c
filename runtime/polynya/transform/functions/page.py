"""The page docs/reference/functions.md, made of the table of functions."""

from __future__ import annotations

from collections.abc import Iterator

from polynya.transform.functions.base import Function
from polynya.transform.functions.spark import ALLOWED_FUNCTIONS
from polynya.transform.functions.table import FUNCTIONS


def functions_page(notice: str) -> str:
    """Return the page: Polynya's functions by family, then the names of Spark's."""
    lines = [notice, "# Functions\n"]
    lines += [
        "This page is for people who write expressions. Every expression of a task, such as",
        "`apply_as_deletes`, may call the functions below, nested and together with the",
        "[functions of Spark](#functions-of-spark). `polynya functions NAME` shows one of them.\n",
        "- An invalid argument counts as NULL, whatever its type; no value of a row raises an",
        "  error. With a NULL argument the result is NULL, unless the table says otherwise.",
        "- If a number is expected, text that is a number counts as one. If an array is expected,",
        "  a single value counts as an array of itself.",
        "- Every name may have the prefix `polynya.`. It is required if Spark has a function of",
        "  the same name, because the bare name is Spark's; the tables show these names with it",
        "  ([ADR 31](../adr/0031-mapping-and-functions.md)).",
        "- Parameters in quotes take a literal: a text, a number, `true` or `false`.",
        "- All functions return the same result on every run. Results are shown as JSON.\n",
    ]
    for family in dict.fromkeys(one.family for one in FUNCTIONS.values()):
        lines += [f"## {family}\n", "| function | result | examples |", "|---|---|---|"]
        lines += [_row(one) for one in FUNCTIONS.values() if one.family == family]
        lines.append("")
    lines += ["## Functions of Spark\n", "As the documentation of Spark SQL defines them:\n"]
    lines.append(", ".join(f"`{name}`" for name in sorted(ALLOWED_FUNCTIONS)) + ".")
    return "\n".join(lines) + "\n"


def _row(one: Function) -> str:
    shown = "<br>".join(_examples(one))
    return f"| {_code(one.signature)} | {_cell(one.about)} | {shown} |"


def _examples(one: Function) -> Iterator[str]:
    for example in one.examples:
        yield f"{_code(example.call)} → {_code(example.gives)}"


def _code(text: str) -> str:
    """Code in a cell of a table; `|` would end the cell."""
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
