"""What the types of other systems are called here, for proposals."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from polynya.model.datatypes.types import PRIMITIVE_NAMES

_COUNTERPARTS: Final = {
    **dict.fromkeys(("varchar", "varchar2", "nvarchar", "char", "character", "nchar"), "string"),
    **dict.fromkeys(("text", "str", "clob", "uuid", "json", "jsonb", "enum", "time"), "string"),
    **dict.fromkeys(("datetime", "datetime2", "datetimeoffset"), "timestamp"),
    **dict.fromkeys(("timestamp_tz", "timestampntz", "timestampz"), "timestamp"),
    **dict.fromkeys(("number", "bignumeric"), "decimal(38,10)"),
    **dict.fromkeys(("money", "currency"), "decimal(19,4)"),
    **dict.fromkeys(("float8", "float64", "double_precision"), "double"),
    **dict.fromkeys(("float4", "float32"), "float"),
    **dict.fromkeys(("int8", "int64", "serial", "bigserial", "hugeint"), "bigint"),
    **dict.fromkeys(("int2", "int4", "int16", "int32", "mediumint"), "int"),
    **dict.fromkeys(("blob", "bytes", "bytea", "varbinary", "raw"), "binary"),
    **dict.fromkeys(("bit", "logical"), "boolean"),
    "list": "array<string>",
    "object": "struct<name:string>",
}
_KNOWN: Final = (*sorted(PRIMITIVE_NAMES), "array<…>", "decimal(p,s)", "map<…,…>", "struct<…>")


def type_advice(word: str) -> str:
    """What to write in place of a type that is not known."""
    name = word.lower()
    known = f"types: {', '.join(_KNOWN)}"
    if name in _COUNTERPARTS:
        return f"write `{_COUNTERPARTS[name]}`; {known}"
    close = get_close_matches(name[:100], [*PRIMITIVE_NAMES, "decimal", "array", "map", "struct"])
    return f"did you mean `{close[0]}`? {known}" if close else known
