"""How the code uses the error catalogue, read from its syntax trees."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from polynya.model.error_catalogue.codes import MODULES
from polynya.model.error_catalogue.entry import ErrorEntry
from tests.repo.test_layout import ROOT
from tests.repo.test_structure import modules

#: The folders whose code raises errors of the catalogue.
FOLDERS = ("runtime", "constructs", "stacks")
CATALOGUE = "polynya.model.error_catalogue"
CODE = re.compile(r"POLYNYA-[A-Z]+-[0-9]{3}")
#: Texts at the call that replace those of the entry, which then need no values.
REPLACED = ("message", "state", "fix")
#: Keywords of a call that are no values of templates.
PARTS = frozenset({*REPLACED, "where", "why"})

Entry = ErrorEntry[Any]


@dataclass(frozen=True, slots=True)
class Use:
    """A place that names an entry: `call` is None where the entry itself is passed on."""

    name: str
    entry: Entry
    line: int
    call: ast.Call | None


@cache
def sources() -> Mapping[Path, str]:
    """The modules outside of the catalogue, by their paths below the root."""
    return {
        path: (ROOT / path).read_text("utf-8")
        for path in modules()
        if path.parts[0] in FOLDERS and path.parent.name != "error_catalogue"
    }


def entries() -> list[tuple[str, Entry]]:
    """Names and entries of all modules of the catalogue."""
    return [
        (name, value)
        for module in MODULES
        for name, value in vars(module).items()
        if isinstance(value, ErrorEntry)
    ]


@cache
def uses(text: str) -> list[Use]:
    """Where a module calls entries of the catalogue, or passes them on."""
    return list(_uses(ast.parse(text))) if CATALOGUE in text else []


def _uses(tree: ast.Module) -> Iterator[Use]:
    imported = dict(_imported(tree))
    called: dict[ast.expr, ast.Call] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            target = node.func
            if _is_raising(target):
                target = target.func.value  # type: ignore[attr-defined]
            called[target] = node
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) else None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
        if name in imported and isinstance(node, ast.expr):
            yield Use(name, imported[name], node.lineno, called.get(node))


def _is_raising(target: ast.expr) -> bool:
    """Whether a call is that of `ENTRY.raising(Class)`."""
    return (
        isinstance(target, ast.Call)
        and isinstance(target.func, ast.Attribute)
        and target.func.attr == "raising"
    )


def _imported(tree: ast.Module) -> Iterator[tuple[str, Entry]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith(CATALOGUE):
            continue
        module = import_module(node.module or "")
        for alias in node.names:
            value = getattr(module, alias.name)
            if isinstance(value, ErrorEntry):
                yield alias.asname or alias.name, value
            elif node.module == CATALOGUE:
                for name, entry in vars(value).items():
                    if isinstance(entry, ErrorEntry):
                        yield f"{alias.asname or alias.name}.{name}", entry


def wrong_keywords(use: Use) -> str | None:
    """What a call gives that no template has, or lacks; None for a right one."""
    call = use.call
    if call is None:
        return None
    given = {keyword.arg for keyword in call.keywords}
    if None in given:
        return "passes values by `**`, which nobody can compare"
    replaced = {part for part in REPLACED if part in given}
    if call.args:
        replaced.add("message")
    wanted = values_of(use.entry, replaced)
    values = {name for name in given if name} - PARTS
    if lacking := sorted(wanted - values):
        return f"lacks {', '.join(lacking)}"
    unused = sorted(values - values_of(use.entry, set()))
    return f"has no use for {', '.join(unused)}" if unused else None


def values_of(entry: Entry, replaced: set[str]) -> set[str]:
    """Names of the values in the templates of an entry that a call does not replace."""
    texts = {
        "message": entry.message or entry.title,
        "state": entry.state,
        "fix": entry.fix,
    }
    return {
        name
        for part, text in texts.items()
        if part not in replaced
        for _, name, _, _ in string.Formatter().parse(text or "")
        if name is not None
    }


@cache
def written_codes(text: str) -> list[str]:
    """Error codes in text literals of a module; docstrings and comments may name codes."""
    if CODE.search(text) is None:
        return []
    tree = ast.parse(text)
    described = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        code
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in described
        for code in CODE.findall(node.value)
    ]
