"""Names: which are allowed, and how any name or text is quoted for Spark SQL."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from polynya.model.errors import ConfigError

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MAX_COLUMN_LENGTH: Final = 255
_HEADER_PREFIX: Final = "hdr__"

SERVICE_COLUMNS: Final = frozenset(
    {
        "__file",
        "__offset",
        "__raw",
        "__op",
        "__ci",
        "__tail",
        "__position",
        "__ts",
        "__unsent",
        "__old",
    }
)
"""Columns that landing adds to a batch; a source column cannot have such a name."""


def quote(name: str) -> str:
    """Return one identifier in back-quotes, with back-quotes inside doubled."""
    return "`" + name.replace("`", "``") + "`"


def quote_path(*names: str) -> str:
    """Return a dotted path of quoted identifiers: `` `shop`.`users` ``."""
    return ".".join(quote(name) for name in names)


def literal(text: str) -> str:
    """Return a text as a string literal of Spark SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def is_name(text: str) -> bool:
    """Tell whether a text may name a schema, a view, a table or a task."""
    return _NAME.fullmatch(text) is not None


def check_name(name: str, *, what: str = "name", where: str | None = None) -> str:
    """Return a name that becomes a schema, view, table or task, or raise ConfigError.

    Such names reach file systems, catalogs and several SQL dialects, so only ASCII letters,
    digits and `_` pass, at most 128 of them, and the first is no digit.
    """
    if not is_name(name):
        raise ConfigError(
            "POLYNYA-CFG-010",
            f"{what} {shown(name)} is not usable as a name",
            where=where,
            fix="use 1 to 128 of A-Z a-z 0-9 _, not starting with a digit",
        )
    return name


#: Columns that Iceberg's readers give beside those of a table. One of a table that has such a name
#: cannot be read, and hides the place of a row.
METADATA_COLUMNS: Final = frozenset(
    {
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
    }
)


def folded(name: str) -> str:
    """A name as engines compare it: two names with the same result are one name to them.

    Spark compares character by character, as Java's `equalsIgnoreCase` does, in capitals and then
    in small letters: so the `i` without a dot is `i`, the long `s` is `s`, and the sign micro is
    the letter mu. Python's `lower` and `casefold` know other pairs.
    """
    if name.isascii():
        return name.lower()
    # The small letter of `İ` is `i` to one engine and an `i` with a dot above it to another.
    return "".join(map(_same, name)).replace("i\u0307", "i")


@lru_cache(maxsize=4096)
def _same(character: str) -> str:
    """The small letter of the capital of a character, where each is one character."""
    capital = next(
        (one for one in (character.upper(), character.title()) if len(one) == 1), character
    )
    small = capital.lower()
    return small if len(small) == 1 else small[0]


def column_problem(name: str) -> str | None:
    """Say what is wrong with a column name, or None; any text but control and reserved ones."""
    if not name:
        return "a column name is empty"
    if len(name) > _MAX_COLUMN_LENGTH:
        return f"column name {shown(name)} is longer than {_MAX_COLUMN_LENGTH} characters"
    if _CONTROL.search(name):
        return f"column name {shown(name)} holds a control character"
    if name.lower().startswith(_HEADER_PREFIX) or name.lower() in SERVICE_COLUMNS:
        return f"column name {shown(name)} is reserved for Polynya"
    return None


def shown(text: str, *, limit: int = 60) -> str:
    """Return a text for a message: in back-quotes, control characters escaped, cut at `limit`."""
    cut = text if len(text) <= limit else text[:limit] + "…"
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return f"`{safe}`"
