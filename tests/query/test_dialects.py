"""The views in the SQL of each engine show the same rows: run by DuckDB over rows made by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import sqlglot

from polynya.formats.values.arrow_types import arrow_type
from polynya.lake.fold.live_views import columns_of, definitions
from polynya.lake.fold.shape import Shape
from polynya.model import headers as h
from polynya.model.config.dataset import Relations
from polynya.model.errors import OperationError
from polynya.model.names import Dialect
from polynya.model.types import parse_type
from polynya.query.dialects import create_view, type_in, views_in
from tests.query.dialects import comparable, rows_in, shown_in

RELATIONS = Relations(
    "Shop", "Users", "Users__history", "Users__changes", "Shop_internal", "Users_internal",
    headers_view="Users__whdr", from_timestamp=True,
)  # fmt: skip
DATASET: Any = SimpleNamespace(relations=RELATIONS)
TRANSLATED = [one for one in Dialect if one is not Dialect.SPARK]
FLAT = {
    name: parse_type(kind)
    for name, kind in {
        "Id": "bigint", "name": "string", "n": "int", "at": "timestamp", "wall": "timestamp_ntz",
        "blob": "binary", 'the "odd"': "decimal(9,2)", "score": "double", "day": "date",
    }.items()
}  # fmt: skip
NESTED = FLAT | {
    "tags": parse_type("array<string>"),
    "spot": parse_type("struct<x:double,`the place`:string>"),
    "flags": parse_type("map<string,int>"),
}
SENT_NAME = '["hdr__all_but","name"]'
START = datetime(2026, 1, 1, tzinfo=UTC)


def moment(second: int) -> datetime:
    return START + timedelta(seconds=second)


def row(partition: str, ci: int, operation: str, key: int, **values: Any) -> dict[str, Any]:
    """One row of the internal table. Loaded and late events have no `copied`."""
    applied = partition in {"current", "prior"}
    made: dict[str, Any] = {
        h.PARTITION: partition,
        h.KEY_HASH: b"hash of %d" % key,
        h.CHANGE_IDENTIFIER: f"{ci:05}",
        h.OPERATION: operation,
        h.TIMESTAMP: moment(ci),
        h.FROM_TIMESTAMP: moment(ci) if applied else None,
        "Id": key,
        "n": ci,
    }
    return made | {h.COPY_CHANGE_IDENTIFIER: None} | values


#: Versions, and pending changes: in order, late, repeated, partial, of looks and of deletes.
ROWS = [
    row("prior", 1, "I", 1, name="one", **{h.TO_TIMESTAMP: moment(4)}),
    row("current", 4, "U", 1, name="two", at=moment(9), blob=b"\x00\xff", score=1.5),
    row("current", 2, "I", 2, name=None, wall=datetime(2026, 2, 3, 4, 5)),
    row("prior", 3, "I", 3, name="gone", **{h.TO_TIMESTAMP: moment(5)}),
    row("prior", 5, "D", 3, name="gone"),
    row("current", 6, "L", 4, name="quiet", tags=["a", None], spot={"x": 1.5, "the place": None}),
    row("current", 7, "L", 5, name="loaded", flags=[("k", 1)]),
    row("changes", 10, "U", 1, name=None, **{h.COPY_CHANGE_IDENTIFIER: "00009"}),
    row("changes", 11, "U", 2, name="sent", n=None, **{h.UNSENT: SENT_NAME}),
    row("changes", 11, "U", 2, name="sent", n=None, **{h.UNSENT: SENT_NAME}),
    row("changes", 12, "D", 2),
    row("changes", 13, "I", 2, name="again", blob=b"x", tags=[], flags=[]),
    row("changes", 14, "D", 4, **{h.COPY_CHANGE_IDENTIFIER: "00009"}),
    row("changes", 2, "U", 5, name="late", n=None),
    row("changes", 8, "U", 5, name=None, **{h.UNSENT: '["name"]'}),
    row("changes", 15, "I", 6, name="n\u00e9w's", at=moment(3), score=-0.5),
    row("changes", 16, "L", 6, name="n\u00e9w's", at=moment(3), score=-0.5, n=15),
    row("changes", 4, "U", 3, name="before the delete"),
    row("retained", 1, "I", 1, name="one"),
    row("asset_state", 0, "I", 0),
    row("quarantine", 0, "I", 0),
]

QUICK = {"history"}
SHAPES = {
    "history": Shape(("Id",), NESTED, history=True),
    "hard deletes": Shape(("Id",), NESTED, holds_deletes=True),
    "soft deletes": Shape(("Id",), NESTED, soft_delete=True),
    "values that were not sent": Shape(("Id",), FLAT, history=True, partial=("name", "n")),
    "looks": Shape(("Id",), FLAT, history=True, partial=("name", "n"), looks=True, links=True),
    "coalesced": Shape(("Id",), FLAT, history=True, coalesce=True, tracked=("name", "blob")),
    "append only": Shape((), NESTED, append_only=True),
    "rows that leave": Shape(("Id",), FLAT, expired=("at", moment(5))),
    "days that leave": Shape(("Id",), FLAT, expired=("wall", datetime(2026, 2, 3, 5, tzinfo=UTC))),
    "a key of several columns": Shape(("Id", "name"), FLAT, history=True),
}


def stored(shape: Shape) -> pa.Table:
    """The rows as a table whose columns are those of the internal table."""
    types = {header.name: arrow_type(parse_type(header.type)) for header in h.HEADERS}
    types |= {name: arrow_type(kind) for name, kind in shape.columns.items()}
    return pa.table(
        {name: pa.array([one.get(name) for one in ROWS], kind) for name, kind in types.items()}
    )


def text_of(dialect: Dialect, shape: Shape, view: str) -> str:
    """A view over the table that the tests load."""
    [found] = [one for one in _views(dialect, shape) if one.name.lower() == view.lower()]
    return found.sql


#: All views of a shape are translated together, which takes longer than to ask them.
_TRANSLATED: dict[tuple[Dialect, str], Any] = {}


def _views(dialect: Dialect, shape: Shape) -> Any:
    key = dialect, repr(shape)
    if key not in _TRANSLATED:
        table = dialect.quote("s", "stored")
        _TRANSLATED[key] = views_in(dialect, DATASET, shape, table)
    return _TRANSLATED[key]


def flat(shape: Shape) -> Shape:
    """The shape without nested columns, as Redshift's views have it."""
    return replace(shape, columns={name: FLAT[name] for name in shape.columns if name in FLAT})


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in QUICK else pytest.mark.slow) for kind in SHAPES]
)
def test_each_dialect_shows_the_same_rows(kind: str) -> None:
    shape = SHAPES[kind]
    for view in definitions(DATASET, shape, "t"):
        wanted = {
            one: rows_in(Dialect.TRINO, text_of(Dialect.TRINO, one_shape, view), one_shape, rows)
            for one, one_shape, rows in (
                ("nested", shape, stored(shape)), ("flat", flat(shape), stored(flat(shape)))
            )
        }  # fmt: skip
        assert wanted["flat"] or view != RELATIONS.view
        for dialect in set(TRANSLATED) - {Dialect.TRINO}:
            is_flat = dialect is Dialect.REDSHIFT
            own = flat(shape) if is_flat else shape
            shown = rows_in(dialect, text_of(dialect, own, view), own, stored(own))
            assert shown == wanted["flat" if is_flat else "nested"], (dialect, view)


#: What a translation gets wrong most easily: NULL, the order, and which value of a window counts.
PLANTED: dict[Dialect, tuple[str, str]] = {
    Dialect.TRINO: (" IGNORE NULLS", ""),
    Dialect.ATHENA: ("LAST_VALUE(", "FIRST_VALUE("),
    Dialect.DUCKDB: ("LAST_VALUE(", "FIRST_VALUE("),
    Dialect.SNOWFLAKE: ('"__seq" NULLS FIRST', '"__seq" DESC'),
    Dialect.REDSHIFT: (" IS NULL", " IS NOT NULL"),
    Dialect.DATABRICKS: ("last_value(", "first_value("),
}


@pytest.mark.parametrize("dialect", TRANSLATED)
def test_a_mistranslation_would_be_noticed(dialect: Dialect) -> None:
    shape = SHAPES["looks"]
    right = text_of(dialect, shape, RELATIONS.history_view)
    wrong = right.replace(*PLANTED[dialect])

    assert wrong != right
    assert rows_in(dialect, wrong, shape, stored(shape)) != rows_in(
        dialect, right, shape, stored(shape)
    )


@pytest.mark.parametrize("dialect", TRANSLATED)
def test_statements_parse_and_name_their_columns(dialect: Dialect) -> None:
    for shape in (SHAPES["coalesced"], SHAPES["hard deletes"]):
        for view in views_in(dialect, DATASET, shape, dialect.quote("s", "it's `odd`\"")):
            made = create_view(dialect, dialect.quote("Shop", view.name), view)
            if dialect is Dialect.REDSHIFT:
                assert made.endswith(" WITH NO SCHEMA BINDING")
                made = made.removesuffix(" WITH NO SCHEMA BINDING")
            sqlglot.parse_one(made, read=dialect)
            tree = sqlglot.parse_one(view.sql, read=dialect)
            if dialect not in {Dialect.DUCKDB, Dialect.DATABRICKS}:
                assert tree.named_selects == list(view.columns)
            assert all(type_in(dialect, kind) for kind in view.columns.values())


def test_redshift_names_the_columns_that_its_views_lack() -> None:
    [current, *_] = views_in(Dialect.REDSHIFT, DATASET, SHAPES["history"], "t")

    assert set(current.left_out) == {"tags", "spot", "flags"}
    assert not set(current.columns) & set(current.left_out)


def test_redshift_does_not_take_versions_for_equal_whose_lists_differ() -> None:
    with pytest.raises(OperationError) as refused:
        views_in(Dialect.REDSHIFT, DATASET, replace(SHAPES["history"], coalesce=True), "t")

    assert refused.value.code == "POLYNYA-VIEW-004"
    assert "tags, spot, flags" in str(refused.value)


def test_types_are_those_of_the_engines() -> None:
    instant, number = parse_type("timestamp"), parse_type("decimal(9,2)")

    assert [type_in(one, instant) for one in Dialect] == [
        "timestamp", "timestamp(6) with time zone", "timestamp(6)", "TIMESTAMP(6)",
        "TIMESTAMP_LTZ(6)", "TIMESTAMPTZ", "timestamp",
    ]  # fmt: skip
    assert type_in(Dialect.SNOWFLAKE, number) == "NUMBER(9,2)"
    assert type_in(Dialect.SNOWFLAKE, NESTED["spot"]) == 'OBJECT("x" FLOAT, "the place" VARCHAR)'


@pytest.mark.parametrize("kind", ["history", "soft deletes", "append only"])
def test_stored_views_show_what_is_applied_in_one_scan(kind: str) -> None:
    shape = SHAPES[kind]
    rows = stored(shape)
    current = text_of(Dialect.SPARK, shape, RELATIONS.current_stored_view)

    shown = shown_in(Dialect.DUCKDB, text_of(Dialect.DUCKDB, shape, RELATIONS.current_stored_view),
                     shape, rows)  # fmt: skip

    assert "JOIN" not in current
    assert "OVER" not in current
    applied = [one for one in ROWS if one[h.PARTITION] == "current"]
    assert sorted(one[0] for one in shown) == sorted(one["Id"] for one in applied)
    assert columns_of(DATASET, shape, RELATIONS.current_stored_view) == columns_of(
        DATASET, shape, RELATIONS.view
    )


def test_stored_history_shows_each_version_as_it_is_stored() -> None:
    shape = SHAPES["coalesced"]
    text = text_of(Dialect.DUCKDB, shape, RELATIONS.history_stored_view)

    shown = shown_in(Dialect.DUCKDB, text, shape, stored(shape))

    applied = [one for one in ROWS if one[h.PARTITION] in {"current", "prior"}]
    assert sorted(comparable(one[2]) for one in shown) == sorted(one["n"] for one in applied)
