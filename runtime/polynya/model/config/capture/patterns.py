"""Names of tables with wildcards, as a capture chooses them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from polynya.model.contract.wildcards import any_text

#: Both stand for any text.
_WILDCARDS: Final = re.compile(r"[%*]")


def matches(pattern: str, table: str) -> bool:
    """Tell whether a pattern takes a table, such as `public.orders`. Case matters."""
    return any_text(pattern, "%*").fullmatch(table) is not None


def takes(include: Iterable[str], exclude: Iterable[str], table: str) -> bool:
    """Tell whether a table is included and not excluded."""
    wanted = any(matches(one, table) for one in include)
    return wanted and not any(matches(one, table) for one in exclude)


def has_wildcard(pattern: str) -> bool:
    """Tell whether a pattern may take tables that come later."""
    return _WILDCARDS.search(pattern) is not None
