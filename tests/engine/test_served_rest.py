"""A project whose catalog is behind REST itself: what that one knows of the project is served."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from polynya.lake.spark.catalog import python_catalog
from polynya.model.loader import load_project
from tests.lab.served import served
from tests.rest_catalogs import served_project

USERS = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: shop
landing: {path: users, format: json}
datasets: [{name: users, keys: [id], sequence_by: [n]}]
"""


@pytest.mark.slow
def test_tables_of_the_project_are_served_as_of_the_newest_commit(tmp_path: Path) -> None:
    with served_project(tmp_path) as directory:
        (directory / "tasks").mkdir(exist_ok=True)
        (directory / "tasks" / "users.yml").write_text(USERS, encoding="utf-8")
        project = load_project(directory)
        own = python_catalog(project.target)
        for namespace in ("shop_internal", "foreign"):
            own.create_namespace(namespace)
        name = ("shop_internal", "users_internal")
        table = own.create_table(name, Schema(NestedField(1, "id", LongType())))

        with served(project) as found:
            client = load_catalog("any", type="rest", uri=found.url)
            assert client.list_namespaces() == [("shop",), ("shop_internal",)]
            assert client.list_tables("shop_internal") == [name]
            assert client.list_views("shop") == []
            assert client.load_table(name).metadata_location == table.metadata_location

            table.transaction().set_properties({"seen": "yes"}).commit_transaction()
            assert client.load_table(name).properties["seen"] == "yes"
            assert not client.table_exists(("foreign", "users_internal"))
