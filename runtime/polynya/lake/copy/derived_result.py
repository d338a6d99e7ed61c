"""The result of a derived table's query: what it depends on, and the columns that the table gets.

Pure: a step and a plan decide by the same rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from polynya.model.config.expectations import ResultExpectation
from polynya.model.config.registered import RegisteredTable
from polynya.model.error_catalogue.derived import (
    COLUMN_CHANGED_TYPE,
    RESULT_KEYS_WRONG,
    RESULT_TYPE_REFUSED,
)
from polynya.model.names import quote, shown
from polynya.model.promotion import is_in_place, widen
from polynya.model.types import DataType, TypeSyntaxError, Void, parse_type


def result_schema(
    name: str,
    result: Sequence[tuple[str, str]],
    known: Mapping[str, DataType],
    keys: Iterable[str],
) -> dict[str, DataType]:
    """Columns of a result in the types of its table.

    `name` is the table's, for errors; `result` has names and types in Spark's spelling, `known` the
    columns that the table has.

    Raises OperationError for a type that no table can hold, for one that the column of the table
    cannot get in place, for two columns of one name, and for keys that the result lacks.
    """
    schema: dict[str, DataType] = {}
    for column, text in result:
        try:
            kind = parse_type(text)
        except TypeSyntaxError:
            raise RESULT_TYPE_REFUSED(where=name, column=shown(column), type=text) from None
        if isinstance(kind, Void):
            raise RESULT_TYPE_REFUSED(where=name, column=shown(column), type="void")
        before = known.get(column)
        if before is not None and before != kind:
            wider = widen(before, kind)
            if wider is None or not is_in_place(before, wider):
                raise COLUMN_CHANGED_TYPE(where=name, column=shown(column), now=kind, before=before)
            kind = wider
        schema[column] = kind
    folded = [column.lower() for column, _ in result]
    if twice := sorted({one for one in folded if folded.count(one) > 1}):
        problem = f"the query has more than one column called {shown(twice[0])}"
        raise RESULT_KEYS_WRONG(where=name, problem=problem, fix="give each an alias of its own")
    if lacking := [key for key in keys if key not in schema]:
        problem = f"the query has no column called {shown(lacking[0])}, which `keys` names"
        raise RESULT_KEYS_WRONG(where=name, problem=problem)
    return schema


def result_digest(
    text: str,
    keys: Iterable[str],
    inputs: Mapping[str, str],
    expect: Iterable[ResultExpectation],
) -> str:
    """What a result depends on besides rows, as SHA-256 in hex.

    Args:
        text: the query.
        keys: of its table.
        inputs: how each input shows its rows, by its name in the query.
        expect: what it has to satisfy: one that is new or edited is judged by the next step, over
            all rows.
    """
    expected = (one.model_dump_json(exclude_unset=True) for one in expect)
    views = (f"{name}: {view}" for name, view in sorted(inputs.items()))
    parts = [text, ", ".join(map(quote, keys)), *views, *expected]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def registered_text(columns: Mapping[str, str], keys: Sequence[str], table: RegisteredTable) -> str:
    """How a registered table shows its rows, for `result_digest`; columns and keys as it has them.

    Rows that a wrong `changed_by` left out are computed once it is corrected.
    """
    return f"{dict(columns)} {tuple(keys)} {table.source}{table.changed_by or ''}"
