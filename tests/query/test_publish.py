"""Views in the Glue catalog, in the form that Athena and Trino read; without Spark."""

from __future__ import annotations

import base64
import json

import pytest
import sqlglot
from botocore.exceptions import ClientError
from sqlglot import exp

from polynya.cli.main import main
from polynya.lake.fold.shape import Shape
from polynya.model.config.task import resolved
from polynya.model.errors import ConflictError, OperationError
from polynya.model.loader import load_project
from polynya.model.names import Dialect
from polynya.model.types import parse_type
from polynya.query.dialects import views_in
from polynya.query.glue import DEFINITION, GluePublisher, athena_views
from tests.aws import REGION, aws_server, client
from tests.projects import aws_project, write_project

USERS = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: Shop
landing: {path: users, format: json}
views: {headers: true}
datasets:
  - {name: Users, keys: [userId], sequence_by: [n], history: true}
"""
COLUMNS = {
    "userId": "bigint", "born": "timestamp", "wall": "timestamp_ntz", "photo": "binary",
    "where": "struct<`the place`:string,at:timestamp>", 'odd"name': "map<string,decimal(9,2)>",
    "counts": "array<int>", "score": "float",
}  # fmt: skip
#: What Trino and Athena have, as sqlglot names it. A new one has to be looked up there first.
KNOWN = {
    "And", "AnyValue", "Array", "ArrayContains", "ArrayToString", "AtTimeZone", "Case", "Cast",
    "Chr", "Coalesce", "Concat", "Encode", "Exists", "Hex", "If", "JSONFormat", "Lag", "LastValue",
    "Lead", "Max", "Min", "Or", "ParseJSON", "RowNumber", "SHA", "Struct", "Sum", "Upper",
}  # fmt: skip


def shape(**how) -> Shape:
    columns = {name: parse_type(text) for name, text in COLUMNS.items()}
    return Shape(("userId",), columns, history=True, **how)


@pytest.fixture(scope="module")
def endpoint():
    with aws_server() as address:
        yield address


@pytest.fixture
def project(endpoint, tmp_path):
    text = aws_project(endpoint, REGION)
    return load_project(write_project(tmp_path, project=text, users=USERS))


def test_only_functions_that_trino_has_are_used(project) -> None:
    [dataset] = project.datasets()
    kinds = [
        shape(),
        shape(coalesce=True, partial=("where", "score"), links=True),
        shape(soft_delete=True),
        Shape((), shape().columns, append_only=True),
    ]
    for view in [view for kind in kinds for view in athena_views(dataset, kind)]:
        tree = sqlglot.parse_one(view.sql, read="trino")
        used = {type(one).__name__ for one in tree.find_all(exp.Func)}
        assert used <= KNOWN, used - KNOWN
        assert not list(tree.find_all(exp.Anonymous, exp.TryCast))
        assert [one.lower() for one in view.columns] == tree.named_selects


def test_a_view_is_published_once_and_again_when_it_changes(project, endpoint) -> None:
    [dataset] = project.datasets()
    publisher = GluePublisher(project.target)
    shown = ("", "__changes", "__current_stored", "__whdr", "__history", "__history_stored")
    names = [f"shop.users{suffix}" for suffix in shown]

    assert publisher.stale(dataset, shape()) == names
    assert publisher.publish(dataset, shape()) == names
    assert (publisher.publish(dataset, shape()), publisher.stale(dataset, shape())) == ([], [])

    table = client("glue", endpoint).get_table(DatabaseName="shop", Name="users")["Table"]
    assert (table["TableType"], table["Parameters"]["presto_view"]) == ("VIRTUAL_VIEW", "true")
    assert table["Parameters"]["comment"] == "Presto View"
    text = table["ViewOriginalText"].removeprefix("/* Presto View: ").removesuffix(" */")
    view = json.loads(base64.b64decode(text))
    assert (view["catalog"], view["schema"]) == ("awsdatacatalog", "shop")
    assert '"shop_internal"."users_internal"' in view["originalSql"]
    types = {column["name"]: column["type"] for column in view["columns"]}
    assert types["born"] == "timestamp(6)"
    assert types["where"] == 'row("the place" varchar, "at" timestamp(6) with time zone)'
    assert types['odd"name'] == "map(varchar, decimal(9,2))"
    stored = {one["Name"]: one["Type"] for one in table["StorageDescriptor"]["Columns"]}
    assert list(stored) == list(types)
    assert (stored["born"], stored["counts"]) == ("timestamp", "array<int>")

    grown = Shape(("userId",), {**shape().columns, "more": parse_type("int")}, history=True)
    assert publisher.stale(dataset, grown) == names
    assert publisher.publish(dataset, grown) == names


def test_what_is_not_ours_stays(project, endpoint) -> None:
    glue = client("glue", endpoint)
    [dataset] = project.datasets()
    publisher = GluePublisher(project.target)
    publisher.publish(dataset, shape())
    glue.delete_table(DatabaseName="shop", Name="users")
    glue.create_table(DatabaseName="shop", TableInput={"Name": "users"})

    with pytest.raises(OperationError) as taken:
        publisher.publish(dataset, shape())

    assert taken.value.code == "POLYNYA-VIEW-001"
    left = glue.get_table(DatabaseName="shop", Name="users")["Table"]
    assert DEFINITION not in left.get("Parameters", {})
    glue.delete_table(DatabaseName="shop", Name="users")


def test_another_writer_is_not_overwritten_blindly(project, monkeypatch) -> None:
    """The stand-in takes every version; Glue answers like this."""
    [dataset] = project.datasets()
    publisher = GluePublisher(project.target)
    publisher.publish(dataset, shape())
    answers = []

    def refused(**of):
        answers.append(of["VersionId"])
        raise ClientError({"Error": {"Code": "ConcurrentModificationException"}}, "UpdateTable")

    monkeypatch.setattr(publisher._glue._glue, "update_table", refused)
    with pytest.raises(ConflictError) as lost:
        publisher.publish(dataset, shape(soft_delete=True))

    assert lost.value.code == "POLYNYA-VIEW-002"
    assert len(answers) == 5


def test_views_for_trino_read_the_table_in_a_catalog_of_their_choice(tmp_path) -> None:
    [task] = load_project(write_project(tmp_path, users=USERS)).tasks
    dataset = resolved(task, task.datasets[0])
    hostile = 'la"ke`'

    place = Dialect.TRINO.quote(hostile, "shop_internal", "users_internal")
    [found, *_] = views_in(Dialect.TRINO, dataset, shape(), place)
    tables = sqlglot.parse_one(found.sql, read="trino").find_all(exp.Table)

    assert {table.catalog for table in tables if table.db} == {hostile}


def test_views_for_duckdb_name_no_catalog(tmp_path, capsys) -> None:
    write_project(tmp_path, users=USERS)

    code = main(["views", "Shop.Users", "--catalog", "lake", "--project", str(tmp_path)])

    assert code == 2
    assert "views for DuckDB name no catalog" in capsys.readouterr().err
