"""Completion of SQL on a terminal: keywords, views, and columns of the views in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from polynya.engine.answers import Answers

KEYWORDS: Final = (
    "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "COUNT(", "DESC", "DESCRIBE", "DISTINCT", "ELSE",
    "END", "EXPLAIN", "FROM", "GROUP", "HAVING", "IN", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT",
    "NULL", "ON", "OR", "ORDER", "SELECT", "SHOW", "THEN", "UNION", "USING", "WHEN", "WHERE",
    "WITH",
)  # fmt: skip
_DELIMITERS: Final = " \t\n,()=<>+-*/;'\"`"


class Words:
    """What may stand in a statement; views and their columns are asked for once."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._views: list[str] | None = None
        self._columns: dict[str, list[str]] = {}

    def starting(self, prefix: str, line: str) -> list[str]:
        """The words that begin with a prefix, where `line` is what was typed so far."""
        words = [*self._named(line), *self._all_views(), *KEYWORDS]
        start = prefix.lower()
        return [one for one in words if one.isprintable() and one.lower().startswith(start)]

    def _named(self, line: str) -> list[str]:
        """Columns of the views that the line names."""
        typed = set(re.findall(r"[\w.]+", line.lower()))
        found: dict[str, None] = {}
        for view in self._all_views():
            if view.lower() in typed:
                if view not in self._columns:
                    self._columns[view] = self._answers.columns(view)
                found |= dict.fromkeys(self._columns[view])
        return list(found)

    def _all_views(self) -> list[str]:
        if self._views is None:
            self._views = self._answers.views()
        return self._views


@contextmanager
def completing(words: Words) -> Iterator[None]:
    """Let Tab complete what is typed into `input`, where the system has readline."""
    try:
        import readline
    except ImportError:
        yield
        return

    def complete(prefix: str, state: int) -> str | None:
        try:
            found = words.starting(prefix, readline.get_line_buffer())
        except Exception:  # noqa: BLE001 - a completion that fails must not end what is typed
            return None
        return found[state] if state < len(found) else None

    kept = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(complete)
    readline.set_completer_delims(_DELIMITERS)
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(kept[0])
        readline.set_completer_delims(kept[1])
