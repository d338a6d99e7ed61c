"""The live views in the SQL of Snowflake and Redshift, made from their SQL in Spark.

Both keep structs and lists apart from other values: windows do not take them, or lose their types.
So the text gets along without any. Each field of a struct becomes a column, a value that may be
NULL gets a mark next to it, and lists of column names stay the JSON text that the table stores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from polynya.lake.fold.columns import STORED_FIELDS
from polynya.lake.fold.shape import Shape
from polynya.model.promotion import storage_type
from polynya.model.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    DataType,
    Decimal,
    MapType,
    Primitive,
    Struct,
)

#: Fields of `__stored` that are read where no file is located; all but two are times.
_TEXTS: Final = frozenset({"part", "op"})
_UNSENT: Final = "__unsent"

_SNOWFLAKE: Final[Mapping[str, str]] = {
    "boolean": "BOOLEAN",
    "int": "NUMBER(10,0)",
    "bigint": "NUMBER(19,0)",
    "float": "FLOAT",
    "double": "FLOAT",
    "string": "VARCHAR",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP_LTZ(6)",
    "timestamp_ntz": "TIMESTAMP_NTZ(6)",
}
_REDSHIFT: Final[Mapping[str, str]] = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE PRECISION",
    "string": "VARCHAR(65535)",
    "binary": "VARBYTE",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}


def snowflake_type(datatype: DataType) -> str:
    """The type in Snowflake; a nested one is a structured type."""
    match storage_type(datatype):
        case Primitive(name):
            return _SNOWFLAKE[name]
        case Decimal(precision, scale):
            return f"NUMBER({precision},{scale})"
        case Array(element):
            return f"ARRAY({snowflake_type(element)})"
        case MapType(key, value):
            return f"MAP({snowflake_type(key)}, {snowflake_type(value)})"
        case Struct(fields):
            inner = ", ".join(f"{quoted(name)} {snowflake_type(kind)}" for name, kind in fields)
            return f"OBJECT({inner})"
        case other:
            raise AssertionError(f"no table stores {other}")


def redshift_type(datatype: DataType) -> str:
    """The type in Redshift of a value that is not nested (`is_nested`)."""
    match storage_type(datatype):
        case Primitive(name):
            return _REDSHIFT[name]
        case Decimal(precision, scale):
            return f"DECIMAL({precision},{scale})"
        case other:
            raise AssertionError(f"Redshift's views do not show {other}")


def is_nested(datatype: DataType) -> bool:
    """Whether a column holds structs, lists or maps."""
    return isinstance(storage_type(datatype), Struct | Array | MapType)


def quoted(name: str) -> str:
    """An identifier in the SQL of Snowflake and Redshift."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class Warehouse:
    """What tells the two apart: sqlglot's name, and SQL of what it does not surely translate.

    `text` is the type of texts of any length; `instant` and `local` are those of times with and
    without a zone. `nested` gives the text of a
    nested value that decides whether two are equal; None where views have no such columns.
    """

    name: str
    text: str
    instant: str
    local: str
    hex_of: Callable[[str], str]
    sha1_bytes: Callable[[str], str]
    nested: Callable[[str], str] | None


SNOWFLAKE: Final = Warehouse(
    name="snowflake",
    text="VARCHAR",
    instant="TIMESTAMPLTZ",
    local="TIMESTAMPNTZ",
    hex_of=lambda value: f"HEX_ENCODE({value})",
    sha1_bytes=lambda text: f"SHA1_BINARY({text})",
    nested=lambda value: f"TO_JSON(CAST({value} AS VARIANT))",
)
REDSHIFT: Final = Warehouse(
    name="redshift",
    # By itself a VARCHAR has 256 bytes, to which a cast cuts.
    text="VARCHAR(65535)",
    instant="TIMESTAMPTZ",
    local="TIMESTAMP",
    hex_of=lambda value: f"UPPER(TO_HEX({value}))",
    sha1_bytes=lambda text: f"FROM_HEX(SHA1({text}))",
    nested=None,
)


def in_warehouse(engine: Warehouse, tree: exp.Query, shape: Shape) -> str:
    """A view in the SQL of a warehouse; changes `tree`.

    Raises SqlglotError where something has no translation.
    """
    return _Translation(engine, shape).of(tree)


class _Translation:
    """What becomes of the nodes of one view."""

    def __init__(self, engine: Warehouse, shape: Shape) -> None:
        self._engine, self._shape = engine, shape

    def of(self, tree: exp.Query) -> str:
        for number, query in enumerate(tree.find_all(exp.Subquery)):
            if isinstance(query.parent, exp.From) and not query.alias:
                # Redshift wants an alias there.
                query.set("alias", exp.TableAlias(this=exp.to_identifier(f"__q{number}")))
        for part in list(tree.find_all(exp.Select)):
            part.set("expressions", [one for old in part.expressions for one in self._shown(old)])
        # Parents come first, so that what hangs below a new node is still looked at.
        done = exp.SHA | exp.Unhex
        for node in list(tree.walk(prune=lambda node: isinstance(node, done))):
            new = self._node(node)
            if new is not node:
                node.replace(new)
        if tree.find(exp.Struct, exp.Lambda, exp.Array, exp.FromJson):
            raise UnsupportedError("nested columns that are about to get another type")
        return tree.sql(
            dialect=self._engine.name, identify=True, unsupported_level=ErrorLevel.RAISE
        )

    def _shown(self, node: exp.Expr) -> list[exp.Expr]:
        """The columns that an item of a select list becomes: structs become one for each field."""
        name = node.alias_or_name
        value = node.unalias()
        if name == "__orig":
            # What the row was before values were carried: no view shows it.
            return []
        if name in {"__stored", "__place"} and not (isinstance(value, exp.Column) and value.table):
            return [
                exp.alias_(self._stored(value, field), f"{name}_{field}") for field in STORED_FIELDS
            ]
        if name == "__before" and not isinstance(value, exp.Column):
            return [
                exp.alias_(self._latest(value, field.expression), self._before(field.name))
                for field in value.find(exp.Struct).expressions  # type: ignore[union-attr]
                if field.name in self._shape.values
            ]
        return [node]

    def _stored(self, value: exp.Expr, field: str) -> exp.Expr:
        """One field of the headers of a stored version."""
        match value:
            case exp.Column():
                return exp.column(f"{value.name}_{field}")
            case exp.Window(this=exp.Max(this=exp.Column() as column)):
                window = value.copy()
                window.this.set("this", exp.column(f"{column.name}_{field}"))
                return window
            case exp.Cast(this=exp.Struct() as struct):
                [found] = [one for one in struct.expressions if one.name == field]
                inner: exp.Expr = found.expression.copy()
                return inner
            case exp.Cast(this=exp.Null()):
                kind = self._engine.text if field in _TEXTS else self._engine.instant
                return exp.cast(exp.null(), self._type(kind))
        raise UnsupportedError(f"the stored version {value.sql()}")

    def _before(self, name: str) -> str:
        return f"__before_{self._shape.values.index(name)}"

    def _latest(self, window: exp.Expr, value: exp.Expr) -> exp.Expr:
        """A value of the first or last row of a window that has a struct, also if it is NULL there.

        The mark tells whether that row's value is NULL. If not, it is the first or last value of
        such rows that is not NULL.
        """
        marked, valued = window.copy(), window.copy()
        for one, new in (
            (marked, exp.case().when(value.copy().is_(exp.null()), "0").else_("1")),
            (valued, value.copy()),
        ):
            struct = one.find(exp.Struct)
            assert struct is not None
            struct.replace(new)
        return exp.case().when(exp.EQ(this=marked, expression=exp.Literal.number(1)), valued)

    def _node(self, node: exp.Expr) -> exp.Expr:  # noqa: C901, PLR0911, PLR0912 - a line per kind
        """What becomes of one node."""
        match node:
            case exp.Dot(this=exp.Window() as window) if struct := window.find(exp.Struct):
                return self._children(self._latest(window, struct.expressions[0].expression))
            case exp.Struct(expressions=[exp.PropertyEQ(this=exp.Identifier(this="v"))]):
                # Only whether there is one counts.
                return exp.Literal.number(1)
            case exp.Column() if node.table == "__stored":
                return exp.column(f"__stored_{node.name}")
            case exp.Column() if node.table == "__before":
                return exp.column(self._before(node.name))
            case exp.Column() if node.name == "__stored" and isinstance(node.parent, exp.Is):
                # A stored version has a partition.
                return exp.column("__stored_part")
            case exp.FromJson():
                return exp.column(node.this.name)
            case exp.ArrayContains():
                return self._is_listed(node)
            case exp.TryCast():
                return exp.Cast(this=node.this, to=node.args["to"])
            case exp.DataType():
                return self._type_node(node)
            case exp.Unhex():
                return self._parsed(self._key_hash())
            case exp.SHA():
                return self._parsed(self._content())
            case exp.Window(this=exp.Max(this=exp.Column(name="__del"))):
                window = node.copy()
                window.this.set("this", self._parsed("CASE WHEN __del THEN 1 ELSE 0 END"))
                return exp.paren(exp.EQ(this=window, expression=exp.Literal.number(1)))
            case exp.JSONFormat():
                return self._comparable(node.this)
            case exp.NullSafeEQ():
                return self._same(node)
            case _:
                return node

    def _children(self, node: exp.Expr) -> exp.Expr:
        """A new node, with the nodes below it changed, too."""
        for child in list(node.walk()):
            if child is not node and child.parent is not None:
                new = self._node(child)
                if new is not child:
                    child.replace(new)
        return node

    def _is_listed(self, node: exp.ArrayContains) -> exp.Expr:
        """Whether a JSON text of column names has one.

        Between two names there is a comma, and inside of one each quote has a backslash before it;
        so only a column that is called by a comma could be taken for another one.
        """
        name = node.expression.name
        if name == ",":
            raise UnsupportedError("a column that is called `,`")
        spelled = re.sub(r"\\u00..", _upper, json.dumps(name, ensure_ascii=False))
        listed = exp.DPipe(
            this=exp.Literal.string(","),
            expression=exp.Substring(this=node.this.copy(), start=exp.Literal.number(2)),
        )
        found = exp.StrPosition(this=listed, substr=exp.Literal.string("," + spelled))
        return exp.paren(exp.GT(this=found, expression=exp.Literal.number(0)))

    def _type_node(self, node: exp.DataType) -> exp.Expr:
        kinds = exp.DataType.Type
        match node.this:
            case kinds.ARRAY if isinstance(node.parent, exp.Cast):
                # The only list of a fold: names of columns, as JSON.
                return self._type(self._engine.text)
            case kinds.TIMESTAMPTZ:
                return self._type(self._engine.instant)
            case kinds.TIMESTAMPNTZ | kinds.TIMESTAMP:
                return self._type(self._engine.local)
            case _:
                return node

    def _same(self, node: exp.NullSafeEQ) -> exp.Expr:
        """Equal, or both NULL. Redshift has no operator for that."""
        left, right = (self._comparable(side) for side in (node.this, node.expression))
        if self._engine.nested is not None:
            return exp.NullSafeEQ(this=left, expression=right)
        both = exp.and_(left.copy().is_(exp.null()), right.copy().is_(exp.null()))
        equal = exp.Coalesce(this=exp.EQ(this=left, expression=right), expressions=[exp.false()])
        return exp.paren(exp.or_(equal, both))

    def _comparable(self, value: exp.Expr) -> exp.Expr:
        """A value of which two can be compared: of a nested one its JSON."""
        column = value.find(exp.Column)
        kind = None if column is None else self._shape.columns.get(column.name)
        if column is None or kind is None or not is_nested(kind):
            return value
        if self._engine.nested is None:
            raise UnsupportedError(f"versions that are told apart by the column {column.name}")
        inner = value.copy()
        found = inner.find(exp.Column)
        assert found is not None
        text = self._parsed(self._engine.nested(quoted(column.name)))
        if found is inner:
            return text
        json_of = inner.find(exp.JSONFormat)
        (json_of or found).replace(text)
        return inner

    def _key_hash(self) -> str:
        """The published hash; NULL where a value of the key is written in another way here."""
        types = [self._shape.columns[key] for key in self._shape.keys]
        if not all(_has_same_text(kind) for kind in types):
            return self._binary_null()
        texts = []
        for key, kind in zip(self._shape.keys, types, strict=True):
            text = self._text(quoted(key), kind)
            text = f"LOWER({text})" if kind == BINARY else text
            texts.append(f"COALESCE(CHR(8) || {text}, '')")
        # `concat_ws` leaves NULL out; a key is NULL in records that replace their elements.
        return self._engine.sha1_bytes(f"SUBSTRING({' || '.join(texts)}, 2)")

    def _binary_null(self) -> str:
        return f"CAST(NULL AS {'BINARY' if self._engine is SNOWFLAKE else 'VARBYTE'})"

    def _content(self) -> str:
        """What decides between two events of one place: the same ones in any order."""
        parts = []
        for name in sorted(self._shape.values):
            kind = self._shape.columns[name]
            if is_nested(kind) and self._engine.nested is None:
                continue
            text = self._text(quoted(name), kind)
            # With its length before it, so that no two lists of values have the same text.
            parts.append(f"COALESCE(CAST(LENGTH({text}) AS VARCHAR) || ':' || {text}, '-')")
        return f"SHA1({' || '.join(parts) or chr(39) * 2})"

    def _text(self, value: str, kind: DataType) -> str:
        if kind == BINARY:
            return self._engine.hex_of(value)
        if kind == DATE:
            return f"TO_CHAR({value}, 'YYYY-MM-DD')"
        if is_nested(kind):
            assert self._engine.nested is not None
            return self._engine.nested(value)
        return value if kind == STRING else f"CAST({value} AS VARCHAR)"

    def _type(self, text: str) -> exp.DataType:
        return exp.DataType.build(text, dialect=self._engine.name)

    def _parsed(self, text: str) -> exp.Expr:
        return sqlglot.parse_one(text, read=self._engine.name)


def _upper(found: re.Match[str]) -> str:
    return "\\u" + found[0][2:].upper()


def _has_same_text(datatype: DataType) -> bool:
    """Whether `_text` gives what the key hash is made of."""
    return isinstance(datatype, Decimal) or (
        isinstance(datatype, Primitive)
        and datatype not in {FLOAT, DOUBLE, TIMESTAMP, TIMESTAMP_NTZ}
    )
