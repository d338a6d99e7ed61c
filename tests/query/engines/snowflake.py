"""The stand-in for Snowflake as an engine that reads live views, through Snowflake's connector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from examples.servers.snowflake import snowflake_server
from polynya.engine.inventory import inventory
from polynya.lake.read.inspect import metadata_file
from polynya.lake.spark.catalog import python_catalog
from polynya.lake.warehouse.catalogs import catalog_file
from polynya.model.loader import load_project
from polynya.model.names import Dialect
from tests.query.engines.engines import Edit, Engine, Read, View, printed, unchanged

_QUOTE: Final = Dialect.SNOWFLAKE.quote


def snowflake_engine(folder: Path, edit: Edit = unchanged) -> Engine:
    """The views that `polynya views --engine snowflake` prints, over external tables.

    An external table is made from the metadata file of each dataset, as its page has it. `folder`
    takes the log of the stand-in.
    """

    @contextmanager
    def opened(directory: Path) -> Iterator[Read]:
        # An extra of the project.
        from snowflake import connector

        project = load_project(directory)
        catalog = catalog_file(project.target)
        assert catalog is not None, "the catalog is a file"
        with (
            snowflake_server(folder, catalog) as server,
            closing(
                connector.connect(
                    account="acme", user="polynya", password="x", host="127.0.0.1",
                    port=server.port, protocol="http", database="LAKE", schema="PUBLIC",
                )
            ) as session,
            session.cursor() as cursor,
        ):  # fmt: skip
            cursor.execute("CREATE EXTERNAL VOLUME LAKE_VOL ALLOW_WRITES = FALSE")
            cursor.execute("CREATE CATALOG INTEGRATION FILES_INT CATALOG_SOURCE = OBJECT_STORE")
            for entry in inventory(project, python_catalog(project.target)):
                if entry.table is None or entry.is_ledger:
                    continue
                relations = entry.dataset.relations
                schema, table = (
                    Dialect.SNOWFLAKE.fold(one)
                    for one in (relations.internal_schema, relations.internal_table)
                )
                cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {_QUOTE('LAKE', schema)}")
                cursor.execute(
                    f"CREATE ICEBERG TABLE {_QUOTE('LAKE', schema, table)} "
                    "EXTERNAL_VOLUME = 'LAKE_VOL' CATALOG = 'FILES_INT' "
                    f"METADATA_FILE_PATH = '{metadata_file(entry.table)}'"
                )
            for statement in printed(directory, "--engine", "snowflake", "--catalog", "LAKE"):
                cursor.execute(edit(statement))

            def read(view: View) -> pa.Table:
                cursor.execute(
                    f"SELECT * FROM {_QUOTE('LAKE', view.schema.upper(), view.name.upper())}"
                )
                return cursor.description, cursor.fetchall()

            yield read

    return Engine("Snowflake's stand-in", opened)
