"""The live views in a served catalog: for each engine its text, and each commit at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.view import View
from pyiceberg.view.metadata import ViewVersion

from polynya.model.loader import load_project
from polynya.model.names import Dialect
from polynya.query.dialects import views_in
from tests.lab.lab import Feed, Lab, drop, put
from tests.lab.served import Served, duckdb_here, served
from tests.query.dialects import comparable

ATTACH = "ATTACH '' AS polynya (TYPE iceberg, ENDPOINT '{}', AUTHORIZATION_TYPE 'none')"


@contextmanager
def served_with(users: Feed) -> Iterator[Served]:
    """Serve the catalog of the lab, for a project with this task."""
    project = replace(load_project(users.lab.project), tasks=(users.task,))
    with served(project) as found:
        yield found


def sorted_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(comparable, row)) for row in rows), key=repr)


def by_spark(users: Feed, view: str, columns: list[str]) -> list[tuple[Any, ...]]:
    names = ", ".join(f"`{name}`" for name in columns)
    return sorted_rows(users.lab.rows(f"SELECT {names} FROM {users.lab.schema}.{view}"))


def with_pending_changes(lab: Lab) -> Feed:
    users = lab.feed(columns={"id": "bigint", "seq": "int", "happened": "timestamp"})
    users.apply(*(put(key, key, name=f"n{key}", happened="2026-01-01T00:00:01Z") for key in (1, 2)))
    users.copy(put(1, 10, name="it's"), drop(2, 11), put(3, 12, name="new"))
    return users


def current_version(view: View) -> ViewVersion:
    """The version of a view that it shows."""
    number = view.metadata.current_version_id
    return next(one for one in view.metadata.versions if one.version_id == number)


def test_views_for_duckdb_follow_commits_and_their_text_is_served(lab: Lab) -> None:
    users = with_pending_changes(lab)
    schema, shape = lab.schema, users.table().shape()
    with served_with(users) as found, duckdb_here() as engine:
        # The text that DuckDB finds in the catalog shows what Spark's view shows.
        client = load_catalog("any", type="rest", uri=found.url)
        assert (schema, "users") in client.list_views(schema)
        engine.execute(ATTACH.format(found.url))
        for view in ("users", "users__history", "users__changes"):
            loaded = current_version(client.load_view((schema, view)))
            texts = {one.root.dialect: one.root.sql for one in loaded.representations}
            assert set(texts) == {"spark", "trino", "duckdb"}
            # Trino looks nowhere by itself: its text names the catalog.
            named = f'"polynya"."{schema}_internal".'
            assert {dialect for dialect, sql in texts.items() if "polynya" in sql} == {"trino"}
            assert named in texts["trino"]
            engine.execute(f"USE polynya.{schema}_internal")
            rows = engine.execute(texts["duckdb"]).fetch_arrow_table()
            found_rows = [tuple(row.values()) for row in rows.to_pylist()]
            assert sorted_rows(found_rows) == by_spark(users, view, rows.column_names)
        engine.execute("USE memory.main")

        # Made once, the views show each later commit.
        relations = users.dataset.relations
        path = ("polynya", relations.internal_schema, relations.internal_table)
        views = views_in(Dialect.DUCKDB, users.dataset, shape, Dialect.DUCKDB.quote(*path))
        engine.execute(f"CREATE SCHEMA {schema}")
        for view in views:
            engine.execute(f"CREATE VIEW {schema}.{view.name} AS {view.sql}")
        changes = [put(4, 20, name="later"), drop(1, 21)]
        for number, change in enumerate(changes):
            users.copy(change)
            for view in views if number else views[:1]:
                columns = list(view.columns)
                listed = ", ".join(f'"{name}"' for name in columns)
                rows = engine.execute(f"SELECT {listed} FROM {schema}.{view.name}").fetchall()
                assert sorted_rows(rows) == by_spark(users, view.name, columns)
        users.apply()
        rows = engine.execute(f"SELECT id, name FROM {schema}.users ORDER BY id").fetchall()
        assert rows == [(3, "new"), (4, "later")]


@pytest.mark.slow
def test_a_view_of_other_settings_has_only_its_stored_text(lab: Lab) -> None:
    users = with_pending_changes(lab)
    lab.spark.sql(f"DROP VIEW {users.view}")
    lab.spark.sql(f"CREATE VIEW {users.view} AS SELECT 1 AS one")

    with served_with(users) as found:
        client = load_catalog("any", type="rest", uri=found.url)
        (only,) = current_version(client.load_view((lab.schema, "users"))).representations
        assert only.root.dialect == "spark"
        assert only.root.sql == "SELECT 1 AS one"


@pytest.mark.slow
def test_spark_reads_tables_and_views_in_a_catalog_of_any_name(lab: Lab) -> None:
    users = with_pending_changes(lab)
    with served_with(users) as found:
        settings = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "rest",
            ".uri": found.url,
            ".cache-enabled": "false",
        }
        for name, value in settings.items():
            lab.spark.conf.set(f"spark.sql.catalog.served_lake{name}", value)
        for change in (None, put(5, 30, name="seen at once")):
            if change is not None:
                users.copy(change)
            for view in ("users", "users__history", "users__changes"):
                path = f"served_lake.{lab.schema}.{view}"
                columns = lab.spark.sql(f"SELECT * FROM {path}").columns
                rows = lab.rows(f"SELECT {', '.join(columns)} FROM {path}")
                assert sorted_rows(rows) == by_spark(users, view, columns)
        internal = f"served_lake.{users.internal}"
        assert lab.spark.table(internal).count() == lab.spark.table(users.relation).count()
        with pytest.raises(Exception, match=r"does not support|read-only"):
            lab.spark.sql(f"DELETE FROM {internal} WHERE true")
        assert users.current("id") == [(1,), (3,), (5,)]
