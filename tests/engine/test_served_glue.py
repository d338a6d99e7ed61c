"""A project on Glue, which holds no views: they are made for whoever asks. On a stand-in."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import BinaryType, NestedField, StringType

from polynya.lake.spark.catalog import python_catalog
from polynya.lake.table.state import CopyState, SourceColumns
from polynya.model import headers as h
from polynya.model.loader import load_project
from tests.aws import REGION, aws_server
from tests.lab.served import served
from tests.projects import aws_project, write_project

USERS = """\
apiVersion: polynya/v1
kind: storage
name: users
schema: Shop
landing: {path: users, format: json}
datasets:
  - {name: Users, keys: [id], sequence_by: [n], history: true}
"""
COLUMNS = {"id": "string", "tags": "array<struct<a:int,b:map<string,decimal(9,2)>>>"}
STATE = CopyState(columns=SourceColumns(schema=COLUMNS, keys=["id"]))


@pytest.mark.slow
def test_views_are_made_of_the_settings(tmp_path: Path) -> None:
    with aws_server("acme-lake", "acme-landing") as endpoint:
        text = aws_project(endpoint, REGION)
        project = load_project(write_project(tmp_path, project=text, users=USERS))
        glue = python_catalog(project.target)
        names = [h.PARTITION, h.COPY_CHANGE_IDENTIFIER, h.STATE, "id", "tags"]
        fields = [NestedField(n, name, StringType()) for n, name in enumerate(names, 1)]
        fields.append(NestedField(9, h.KEY_HASH, BinaryType()))
        for namespace in ("shop_internal", "foreign"):
            glue.create_namespace(namespace)
            table = glue.create_table(
                (namespace, "users_internal"),
                Schema(*fields),
                partition_spec=PartitionSpec(
                    PartitionField(1, 1000, IdentityTransform(), h.PARTITION)
                ),
            )
        table = glue.load_table("shop_internal.users_internal")
        row = {h.PARTITION: "asset_state", h.COPY_CHANGE_IDENTIFIER: "", h.STATE: STATE.to_json()}
        table.append(pa.Table.from_pylist([row], table.schema().as_arrow()))

        with served(project) as found:
            client = load_catalog("any", type="rest", uri=found.url)
            # The account has more.
            assert client.list_namespaces() == [("Shop",), ("shop_internal",)]
            assert found.ask("/v1/namespaces/foreign/tables/users_internal")[0] == 404
            assert client.list_tables("shop_internal") == [("shop_internal", "users_internal")]
            assert [name for _, name in client.list_views("Shop")] == [
                "Users", "Users__changes", "Users__current_stored", "Users__history",
                "Users__history_stored",
            ]  # fmt: skip
            assert client.view_exists(("Shop", "Users"))
            assert not client.view_exists(("Shop", "Nobody"))
            loaded = client.load_view(("Shop", "Users")).metadata
            texts = {one.root.dialect: one.root.sql for one in loaded.versions[0].representations}
            assert set(texts) == {"spark", "trino", "duckdb"}
            assert "`shop_internal`.`users_internal`" in texts["spark"]
            columns = {one.name: str(one.field_type) for one in loaded.schemas[0].fields}
            assert columns["tags"].startswith("list<struct<")
            # What engines need to reach the files, and no secret.
            defaults = found.ask("/v1/config")[1]["defaults"]
            assert defaults == {"client.region": REGION, "s3.endpoint": endpoint}

            rows = client.load_table("shop_internal.users_internal")
            assert rows.metadata_location == table.metadata_location
