"""What `derive.py` says of a landed row in SQL, said in Arrow: the hash of its key, chosen rows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from polynya.lake.fold.shape import Shape
from polynya.model.datatypes import BIGINT, INT, STRING, DataType, Void
from polynya.transform.choices import Choice, choice_of

#: Keys whose canonical text is that of Arrow. Semantics section 3, "Key hash".
_HASHED = frozenset({INT, BIGINT, STRING})
_SEPARATOR = "\b"
_NOTHING = Choice("", frozenset())


def can_hash(shape: Shape) -> bool:
    """Whether `key_hashes` takes the keys of a table."""
    return all(shape.columns.get(key) in _HASHED for key in shape.keys)


def key_hashes(keys: Sequence[pa.Array]) -> pa.Array:
    """SHA-1 over the canonical texts of keys, of types that `can_hash` allows and never NULL."""
    texts = [key.cast(pa.string()) for key in keys]
    joined = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, _SEPARATOR)
    sha1 = hashlib.sha1
    digests = b"".join(
        [sha1(text, usedforsecurity=False).digest()
         for text in joined.cast(pa.binary()).to_pylist()]
    )  # fmt: skip
    fixed = pa.Array.from_buffers(pa.binary(20), len(joined), [None, pa.py_buffer(digests)])
    return fixed.cast(pa.binary())


def choice_in(condition: str | None, schema: Mapping[str, DataType]) -> Choice | None:
    """A condition of the settings as a choice, of no row without one; None when it takes SQL.

    `schema` has all source columns.
    """
    if condition is None:
        return _NOTHING
    choice = choice_of(condition)
    if choice is None or schema.get(choice.column, STRING) not in {STRING, Void()}:
        return None
    return choice


def chosen(choice: Choice, rows: pa.RecordBatch | pa.Table) -> Any | None:
    """Which rows a choice names, never NULL; None for no row."""
    if choice.column not in rows.schema.names:
        return None
    texts = pa.array(sorted(choice.texts), pa.string())
    named = pc.is_in(rows.column(choice.column), texts)
    return named if pc.any(named, min_count=0).as_py() else None
