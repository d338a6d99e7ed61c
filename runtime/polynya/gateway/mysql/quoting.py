"""Names and values in the SQL of MariaDB and MySQL."""

from __future__ import annotations


def quoted(*names: str) -> str:
    """A name as an identifier; several are the parts of one, as in `shop`.`orders`."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def literal(text: str) -> str:
    """A text as a constant that no setting of the session reads in another way."""
    if not text:
        return "''"
    return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)"
