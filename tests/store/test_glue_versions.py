"""The fence of two owners on Glue: of two commits on one version, the second is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from moto.core.responses import EmptyResult
from moto.glue.responses import GlueResponse
from pyiceberg.catalog import load_catalog

from tests.aws import REGION, aws_server, client, glue_that_checks_versions

ROWS = pa.table({"id": [1]})


@pytest.fixture
def lake():
    """Makes catalogs of one Glue, as two owners would have them; a table is there."""
    with aws_server("lake") as endpoint, glue_that_checks_versions():

        def catalog():
            return load_catalog(
                "glue",
                **{
                    "type": "glue",
                    "warehouse": "s3://lake/tables",
                    "glue.endpoint": endpoint,
                    "glue.region": REGION,
                    "s3.endpoint": endpoint,
                    "s3.region": REGION,
                    "s3.access-key-id": "testing",
                    "s3.secret-access-key": "testing",
                },
            )

        catalog().create_namespace("shop")
        catalog().create_table("shop.orders", schema=ROWS.schema)
        catalog.endpoint = endpoint
        yield catalog


def rows_of_two_owners(lake) -> int:
    """The other owner appends a row when ours has read the table and is about to append one."""
    ours, theirs = lake().load_table("shop.orders"), lake()
    update = ours.catalog.glue.update_table

    def late(**asked):
        ours.catalog.glue.update_table = update
        theirs.load_table("shop.orders").append(ROWS)
        return update(**asked)

    ours.catalog.glue.update_table = late
    ours.append(ROWS)
    return lake().load_table("shop.orders").scan().to_arrow().num_rows


def test_of_two_commits_on_one_version_none_is_lost(lake, caplog):
    """Glue refuses the second one; Iceberg reads the table again, and commits on what is there."""
    assert rows_of_two_owners(lake) == 2
    assert "concurrent update" in caplog.text


def test_without_the_version_check_a_commit_would_be_lost(lake, monkeypatch):
    """The planted fault: Glue as moto has it, which takes whatever version an update names."""

    def careless(self):
        table = self.parameters["TableInput"]
        self.glue_backend.update_table(self.parameters["DatabaseName"], table["Name"], table)
        return EmptyResult()

    monkeypatch.setattr(GlueResponse, "update_table", careless)

    assert rows_of_two_owners(lake) == 1


def test_the_stand_in_keeps_the_version_check_of_glue(lake):
    glue = client("glue", lake.endpoint)
    table = glue.get_table(DatabaseName="shop", Name="orders")["Table"]
    same = {"Name": "orders", "Parameters": table["Parameters"]}
    asked = {"DatabaseName": "shop", "TableInput": same, "VersionId": table["VersionId"]}

    glue.update_table(**asked)

    with pytest.raises(ClientError, match="ConcurrentModificationException"):
        glue.update_table(**asked)
    glue.update_table(DatabaseName="shop", TableInput=same)  # who names no version, is not asked
