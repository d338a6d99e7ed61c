"""The private columns in the SQL of the lake are those of `columns.py`, each with one meaning."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import polynya.lake
from polynya.formats.batch import SERVICE_FIELDS, SERVICE_NAMES
from polynya.lake.fold import columns
from polynya.lake.fold import fold as versions
from polynya.lake.fold.fold import event_columns, fold, with_clause
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.arrow import spark_type
from tests.lake.fold.test_golden import SHAPES

LAKE = Path(polynya.lake.__file__).parent
DEFINED = {column.name: column for column in columns.COLUMNS}
PRIVATE = re.compile(r"(?<![\w.])__[a-z]\w*")
MADE = re.compile(r"\bAS (__[a-z][a-z_]*)")
#: Made from a list of names, or by a method of a frame.
WITHOUT_AS = (
    *columns.EVENT_HEADERS, "__row", "__rule", "__error", "__retained", "__next_ci", "__next_tail",
    "__next_ts", "__next_seq",
)  # fmt: skip


def texts(module: Path) -> Iterator[str]:
    """String constants of a module, the text of f-strings included, without docstrings."""
    tree = ast.parse(module.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def modules() -> dict[str, list[str]]:
    """Module of the lake (`fold.key_changes`) → its texts."""
    return {
        ".".join(path.relative_to(LAKE).with_suffix("").parts): list(texts(path))
        for path in LAKE.rglob("*.py")
        if path.name != "columns.py" and path.parent.name != "spark"
    }


def test_every_private_column_is_defined_once() -> None:
    assert [
        name for name, times in Counter(c.name for c in columns.COLUMNS).items() if times > 1
    ] == []
    assert set(columns.EVENT_HEADERS) < {column.name for column in columns.EVENT}


def test_the_sql_names_no_other() -> None:
    named = {
        (name, module)
        for module, found in modules().items()
        for text in found
        for name in PRIVATE.findall(text)
    }

    assert {(name, module) for name, module in named if name not in DEFINED} == set()
    assert {name for name in DEFINED if name not in {one for one, _ in named}} == set()


def test_a_column_is_made_where_its_definition_says() -> None:
    """A second module that makes a column of the same name must mean the same by it."""
    made: dict[str, set[str]] = {name: set() for name in DEFINED}
    for module, found in modules().items():
        for text in found:
            for name in MADE.findall(text):
                made[name].add(module)
    for name in WITHOUT_AS:
        made[name] |= set(DEFINED[name].made_in)

    for name, column in DEFINED.items():
        assert made[name] == set(column.made_in), name


def test_landing_gives_the_same_columns() -> None:
    """A name that landing shares with the fold has its meaning, and its type."""
    assert set(DEFINED) >= SERVICE_NAMES
    for field in SERVICE_FIELDS:
        assert str(spark_type(field.type).simpleString()) == DEFINED[field.name].type, field.name


@pytest.mark.parametrize("name", SHAPES)
def test_the_columns_have_their_types(spark: SparkSession, name: str) -> None:
    shape = SHAPES[name]
    data = ", ".join(
        f"CAST(NULL AS {shape.type_of(c)}) AS `{c.replace('`', '``')}`" for c in shape.data
    )
    headers = ", ".join(f"CAST(NULL AS {h.type}) AS {h.name}" for h in columns.h.HEADERS)
    source = f"SELECT {event_columns(shape)} FROM (SELECT {data}, {headers})"
    steps = [("events", source), *fold(shape, "events"), ("placed", versions.placed(shape))]

    schema = spark.sql(f"{with_clause(steps)} SELECT * FROM placed").schema

    types = {field.name: field.dataType.simpleString() for field in schema}
    private = {name: kind for name, kind in types.items() if name.startswith("__")}
    for one, kind in private.items():
        wanted = DEFINED[one].type.replace("`", "")
        assert kind == wanted or wanted == "record", one
    assert {c.name for c in (*columns.EVENT, *columns.FOLDED)} <= set(private) | {"__life"}
