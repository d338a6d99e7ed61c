"""Names and values in the SQL of MariaDB and MySQL."""

from __future__ import annotations

import re
from typing import Final

_CHARSET: Final = re.compile(r"[a-z0-9_]+", re.ASCII)


def quoted(*names: str) -> str:
    """A name as an identifier; several are the parts of one, as in `shop`.`orders`."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def literal(text: str) -> str:
    """A text as a constant that no setting of the session reads in another way.

    It takes the collation of what it is compared with.
    """
    return text_of_bytes(text.encode(), "utf8mb4")


def text_of_bytes(content: bytes, charset: str) -> str:
    """The same from the bytes of a text in a character set. Raises ValueError."""
    if not _CHARSET.fullmatch(charset):
        raise ValueError(f"{charset[:60]!r} is no character set")
    return f"_{charset} X'{content.hex()}'"
