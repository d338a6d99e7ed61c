"""Literals in the type of what they are compared with, where that changes no comparison."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final

from polynya.mirror.embedded.refusal import NotEmbeddedError
from polynya.mirror.embedded.typed import INTEGERS, Constant, Value, text_literal
from polynya.model.datatypes import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)

_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_POINTED: Final = re.compile(r"-?[0-9]{1,18}\.[0-9]{1,18}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile(_DATE.pattern + r"[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z?)")
#: Integers that a double holds exactly.
_EXACT: Final = 2**53


def number(text: str) -> Value:
    """A number as Spark reads it: int, bigint, or decimal, which takes the type of its company."""
    constant = Constant(text, is_string=False)
    if _INTEGER.fullmatch(text):
        for kind, bits, name in ((INT, 31, "INTEGER"), (BIGINT, 63, "BIGINT")):
            if -(2**bits) < int(text) < 2**bits:
                return Value(f"CAST({text} AS {name})", kind, text, constant)
    elif _POINTED.fullmatch(text):
        return Value("", None, None, constant)
    raise NotEmbeddedError(f"the number {text[:40]}")


def string(text: str) -> Value:
    """A text."""
    return Value(text_literal(text), STRING, None, Constant(text, is_string=True))


def as_type(constant: Constant, datatype: DataType) -> str:
    """SQL of a literal as a value of a type, for comparisons with such values.

    Raises:
        NotEmbeddedError: the comparison would be made in another type.
    """
    if not constant.is_string:
        return _number_as(constant.text, datatype)
    if datatype == STRING:
        return text_literal(constant.text)
    return moment(constant.text, datatype)


def moment(text: str, datatype: DataType) -> str:
    """SQL of a date or a time that is written out in full; a time without a zone is one of UTC."""
    try:
        if datatype == DATE and _DATE.fullmatch(text):
            return f"DATE {text_literal(date.fromisoformat(text).isoformat())}"
        found = _TIME.fullmatch(text)
        if found and (datatype == TIMESTAMP or (datatype == TIMESTAMP_NTZ and not found[2])):
            time = datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC)
            shown = time.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")
            if datatype == TIMESTAMP:
                return f"TIMESTAMPTZ {text_literal(shown + '+00')}"
            return f"TIMESTAMP {text_literal(shown)}"
    except ValueError as error:
        raise NotEmbeddedError(f"the text {text!r} as {datatype}") from error
    raise NotEmbeddedError(f"a text in the place of a value of type {datatype}")


def _number_as(text: str, datatype: DataType) -> str:
    is_whole = _INTEGER.fullmatch(text) is not None
    if datatype in INTEGERS and is_whole:
        return number(text).sql
    if isinstance(datatype, Decimal):
        whole, _, rest = text.lstrip("-").partition(".")
        whole, rest = whole.lstrip("0"), rest.rstrip("0")
        if len(rest) <= datatype.scale and len(whole) <= datatype.precision - datatype.scale:
            return f"CAST('{text}' AS DECIMAL({datatype.precision}, {datatype.scale}))"
    if datatype == DOUBLE and (not is_whole or abs(int(text)) <= _EXACT):
        return f"CAST('{text}' AS DOUBLE)"
    raise NotEmbeddedError(f"the number {text} in the place of a value of type {datatype}")
