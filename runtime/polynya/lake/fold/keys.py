"""How a key is rendered: the published hash, and the text that links a record to its former key."""

from __future__ import annotations

from polynya.lake.fold.shape import Shape
from polynya.model.contract.identifiers import quote
from polynya.model.datatypes import DataType, Primitive

_BACKSPACE = "\\b"


def canonical(expression: str, datatype: DataType) -> str:
    """SQL of the canonical string of one key value. Semantics section 3, "Key hash"."""
    match datatype:
        case Primitive("timestamp"):
            return f"concat(replace(CAST({expression} AS STRING), ' ', 'T'), 'Z')"
        case Primitive("timestamp_ntz"):
            return f"replace(CAST({expression} AS STRING), ' ', 'T')"
        case Primitive("binary"):
            return f"lower(hex({expression}))"
        case _:
            return f"CAST({expression} AS STRING)"


def key_hash(shape: Shape) -> str:
    """SQL of `hdr__key_hash`: SHA-1 over the canonical values joined by one backspace character."""
    return f"unhex(sha1(concat_ws('{_BACKSPACE}', {', '.join(_values(shape, ''))})))"


def key_text(shape: Shape, prefix: str = "") -> str:
    """SQL of a text that only equal keys share: the JSON array of their canonical values."""
    return f"to_json(array({', '.join(_values(shape, prefix))}))"


def _values(shape: Shape, prefix: str) -> list[str]:
    return [canonical(prefix + quote(key), shape.columns[key]) for key in shape.keys]
