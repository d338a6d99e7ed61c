"""Which type a column may get by writing all its rows again, where Iceberg has no promotion.

Whether it does get it depends on the values: each must be exactly the same in the new type.
"""

from __future__ import annotations

from typing import Final

from polynya.model.datatypes.promotion import widen
from polynya.model.datatypes.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)

_NUMBERS: Final = frozenset({INT, BIGINT, FLOAT, DOUBLE})
#: What text can be read as; a float could not tell which digits were written.
_READ: Final = frozenset({INT, BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ})
#: What has one text, the same that a reader of a declared `string` gives.
_WRITTEN: Final = frozenset({INT, BIGINT, BOOLEAN, DATE})


def is_rewritable(old: DataType, new: DataType) -> bool:
    """Whether a column of type `old` becomes `new` by a rewrite, and only so."""
    if widen(old, new) is not None:
        return False
    if old == STRING:
        return new in _READ or isinstance(new, Decimal)
    if new == STRING:
        return old in _WRITTEN
    return _is_number(old) and _is_number(new)


def _is_number(kind: DataType) -> bool:
    return kind in _NUMBERS or isinstance(kind, Decimal)
