"""The live views in the SQL of Trino, Athena and DuckDB, made from their SQL in Spark.

sqlglot translates most of it. Two things it cannot know stand here: the types of structs, and
functions whose results would differ. DuckDB's text is made from Trino's.
"""

from __future__ import annotations

from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel

from polynya.lake.fold.shape import Shape
from polynya.model.promotion import storage_type
from polynya.model.types import (
    BINARY,
    Array,
    DataType,
    Decimal,
    MapType,
    Primitive,
    Struct,
)

_TRINO: Final = {
    "boolean": "boolean",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double",
    "string": "varchar",
    "binary": "varbinary",
    "date": "date",
    "timestamp": "timestamp(6) with time zone",
    "timestamp_ntz": "timestamp(6)",
}
#: The types whose text is the same in Spark and in Trino.
_SAME_TEXT: Final = frozenset({"boolean", "int", "bigint", "string", "date"})


def trino_type(datatype: DataType) -> str:
    """The type in Trino."""
    match storage_type(datatype):
        case Primitive(name):
            return _TRINO[name]
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Array(element):
            return f"array({trino_type(element)})"
        case MapType(key, value):
            return f"map({trino_type(key)}, {trino_type(value)})"
        case Struct(fields):
            inner = ", ".join(f"{quoted(name)} {trino_type(kind)}" for name, kind in fields)
            return f"row({inner})"
        case other:
            raise AssertionError(f"no table stores {other}")


def duckdb_type(datatype: DataType) -> str:
    """The type in DuckDB of a column that a view shows: instants are times of UTC."""
    kind = exp.DataType.build(shown_type(datatype), dialect="trino")
    return kind.sql(dialect="duckdb")


def shown_type(datatype: DataType) -> str:
    """The type in which a view shows a column: Athena's views hold no time zone at the top."""
    return "timestamp(6)" if datatype == Primitive("timestamp") else trino_type(datatype)


def glue_type(datatype: DataType) -> str:
    """The type in the Glue Data Catalog, which has that of Hive."""
    match storage_type(datatype):
        case Primitive("timestamp_ntz"):
            return "timestamp"
        case Array(element):
            return f"array<{glue_type(element)}>"
        case MapType(key, value):
            return f"map<{glue_type(key)},{glue_type(value)}>"
        case Struct(fields):
            return f"struct<{','.join(f'{name}:{glue_type(kind)}' for name, kind in fields)}>"
        case other:
            return str(other)


def has_same_text(datatype: DataType) -> bool:
    """Whether a cast to text gives what it gives in Spark."""
    match datatype:
        case Primitive(name):
            return name in _SAME_TEXT
        case Decimal():
            return True
        case _:
            return False


def has_json(datatype: DataType) -> bool:
    """Whether Trino can make JSON of it: of binary and of times with a zone it cannot."""
    match datatype:
        case Array(element):
            return has_json(element)
        case MapType(key, value):
            return key == Primitive("string") and has_json(value)
        case Struct(fields):
            return all(has_json(kind) for _, kind in fields)
        case _:
            return datatype not in {Primitive("binary"), Primitive("timestamp")}


def quoted(name: str) -> str:
    """An identifier in Trino's SQL."""
    return '"' + name.replace('"', '""') + '"'


def trino_sql(tree: exp.Expr, shape: Shape) -> str:
    """A view in Trino's SQL, with instants as times with a zone; changes `tree`.

    Raises SqlglotError.
    """
    # Parents come first, so that what hangs below a new node is still looked at.
    for node in list(tree.walk(prune=lambda node: isinstance(node, exp.SHA | exp.Unhex))):
        new = _trino_node(node, shape)
        if new is not node:
            node.replace(new)
    return tree.sql(dialect="trino", unsupported_level=ErrorLevel.RAISE)


def _trino_node(node: exp.Expr, shape: Shape) -> exp.Expr:  # noqa: PLR0911 - one line per kind
    """What becomes of one node."""
    match node:
        case exp.TryCast():
            return exp.Cast(this=node.this, to=node.args["to"])
        case exp.DataType(this=exp.DataType.Type.TIMESTAMPTZ):
            return _type("timestamp(6) with time zone")
        case exp.DataType(this=exp.DataType.Type.TIMESTAMPNTZ):
            return _type("timestamp(6)")
        case exp.Unhex():
            return _trino(_key_hash(shape))
        case exp.SHA():
            return _trino(_content(shape))
        case exp.Struct():
            return _row(node, shape)
        case exp.Max(this=exp.Column(name="__stored")):
            # Rows with a NULL in them have no order in Trino, and at most one value is not NULL.
            return exp.Anonymous(this="arbitrary", expressions=[node.this])
        case exp.JSONFormat():
            # Maps can be compared as they are.
            inner: exp.Expr = node.this
            return inner
        case exp.FromJson():
            return _trino(f"CAST(json_parse({node.this.name}) AS array(varchar))")
        case _:
            return node


def _row(struct: exp.Struct, shape: Shape) -> exp.Expr:
    """A row with the names and types that a struct has by itself in Spark."""
    row = exp.Anonymous(this="ROW", expressions=[field.expression for field in struct.expressions])
    if isinstance(struct.parent, exp.Cast):
        return row
    fields = []
    for field in struct.expressions:
        datatype = shape.columns[field.expression.name]
        fields.append(f"{quoted(field.name)} {trino_type(datatype)}")
    return exp.Cast(this=row, to=_type(f"row({', '.join(fields)})"))


def _key_hash(shape: Shape) -> str:
    """The published hash; NULL where Trino would write a value of the key in another way."""
    if not all(
        has_same_text(shape.columns[key]) or shape.columns[key] == BINARY for key in shape.keys
    ):
        return "CAST(NULL AS varbinary)"
    values = [
        f"lower(to_hex({quoted(key)}))"
        if shape.columns[key] == BINARY
        else f"CAST({quoted(key)} AS varchar)"
        for key in shape.keys
    ]
    return f"sha1(to_utf8(array_join(ARRAY[{', '.join(values)}], chr(8))))"


def _content(shape: Shape) -> str:
    """What decides between two events of one place: the same ones in any order, but Trino's own."""
    texts = [_text(quoted(name), shape.columns[name]) for name in sorted(shape.values)]
    content = f"json_format(CAST(ARRAY[{', '.join([*texts, 'CAST(NULL AS varchar)'])}] AS json))"
    return f"to_hex(sha1(to_utf8({content})))"


def _text(value: str, datatype: DataType) -> str:
    if datatype == BINARY:
        return f"to_hex({value})"
    if trino_type(datatype).startswith(("array", "map", "row")):
        return f"json_format(CAST({value} AS json))" if has_json(datatype) else "NULL"
    return f"CAST({value} AS varchar)"


def _type(text: str) -> exp.DataType:
    return exp.DataType.build(text, dialect="trino")


def _trino(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="trino")


def duckdb_sql(trino: str, internal: str, stored: str) -> str:
    """A view in DuckDB's SQL; for the table `internal` it reads the relation `stored`."""

    def adapted(node: exp.Expr) -> exp.Expr:
        match node:
            case exp.SHA():
                # DuckDB gives the hash as text.
                return exp.Unhex(this=node.copy())
            case exp.Table() if node.name == internal:
                return exp.Table(this=exp.Var(this=stored), alias=node.args.get("alias"))
            case _:
                return node

    tree = sqlglot.parse_one(trino, read="trino")
    for exists in list(tree.find_all(exp.Exists)):
        _join(exists)
    return tree.transform(adapted).sql("duckdb")


def _join(exists: exp.Exists) -> None:
    """Make a join of `[NOT] EXISTS (SELECT 1 FROM … WHERE …)`, a term of a WHERE.

    Trino's SQL has no word for such joins. DuckDB looks for each row alone unless it finds it.
    """
    is_anti = isinstance(exists.parent, exp.Not)
    term: exp.Expr | None = exists.parent if is_anti else exists
    rows = exists.find_ancestor(exp.Select)
    assert rows is not None
    others = [one for one in rows.args["where"].this.flatten(unnest=False) if one is not term]
    rows.set("where", exp.Where(this=exp.and_(*others, wrap=False)))
    inner = exists.this
    kind, condition = "ANTI" if is_anti else "SEMI", inner.args["where"].this
    rows.append("joins", exp.Join(this=inner.args["from_"].this, kind=kind, on=condition))
