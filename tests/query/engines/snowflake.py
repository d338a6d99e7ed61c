"""The stand-in for Snowflake as an engine that reads live views, through Snowflake's connector."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
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
from tests.query.engines.differences import json_text
from tests.query.engines.engines import Edit, Engine, Read, View, printed, unchanged

#: As pages call it.
NAME: Final = "Snowflake's stand-in"
_ANSWER_SECONDS: Final = 120
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
                    # It is asked again and again about what the stand-in has no answer to.
                    network_timeout=_ANSWER_SECONDS,
                )
            ) as session,
            session.cursor() as cursor,
        ):  # fmt: skip
            cursor.execute("CREATE EXTERNAL VOLUME LAKE_VOL ALLOW_WRITES = FALSE")
            cursor.execute("CREATE CATALOG INTEGRATION FILES_INT CATALOG_SOURCE = OBJECT_STORE")
            nested: dict[str, list[str]] = {}
            for entry in inventory(project, python_catalog(project.target)):
                if entry.table is None or entry.is_ledger:
                    continue
                relations = entry.dataset.relations
                nested[entry.name] = [
                    _QUOTE(Dialect.SNOWFLAKE.fold(column.name))
                    for column in entry.table.schema().fields
                    if not column.field_type.is_primitive and not column.name.startswith("hdr__")
                ]
                schema, table = (
                    Dialect.SNOWFLAKE.fold(one)
                    for one in (relations.internal_schema, relations.internal_table)
                )
                cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {_QUOTE('LAKE', schema)}")
                external = _QUOTE("LAKE", schema, f"{table}__FILES")
                cursor.execute(
                    f"CREATE ICEBERG TABLE {external} "
                    "EXTERNAL_VOLUME = 'LAKE_VOL' CATALOG = 'FILES_INT' "
                    f"METADATA_FILE_PATH = '{metadata_file(entry.table)}'"
                )
                # The stand-in would read the files for each mention of the table in each view.
                cursor.execute(
                    f"CREATE TABLE {_QUOTE('LAKE', schema, table)} AS SELECT * FROM {external}"
                )
            for statement in printed(directory, "--engine", "snowflake", "--catalog", "LAKE"):
                cursor.execute(edit(statement))

            def read(view: View) -> pa.Table:
                # The stand-in describes no nested types, so their JSON is read.
                texts = ", ".join(f"TO_JSON({one}) AS {one}" for one in nested[view.dataset])
                place = _QUOTE("LAKE", *map(Dialect.SNOWFLAKE.fold, (view.schema, view.name)))
                shown = f"* REPLACE ({texts})" if texts else "*"
                cursor.execute(f"SELECT {shown} FROM {place}")
                return _as_arrow(cursor.description, cursor.fetchall(), nested[view.dataset])

            yield read

    return Engine(NAME, opened)


#: By the numbers that the connector has for types.
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "REAL": pa.float64(),
    "TEXT": pa.string(),
    "DATE": pa.date32(),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "TIMESTAMP_TZ": pa.timestamp("us", tz="UTC"),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
}


def _as_arrow(
    description: Sequence[Any], rows: Sequence[tuple[Any, ...]], json_texts: Collection[str]
) -> pa.Table:
    """Rows of the connector, with the types that it tells."""
    from snowflake.connector.constants import FIELD_ID_TO_NAME

    schema, columns = [], []
    for at, column in enumerate(description):
        kind = FIELD_ID_TO_NAME[column.type_code]
        values = [row[at] for row in rows]
        if kind == "FIXED":
            schema.append((column.name, pa.decimal128(column.precision, column.scale)))
            values = [None if value is None else Decimal(value) for value in values]
        else:
            schema.append((column.name, _TYPES[kind]))
        if _QUOTE(column.name) in json_texts:
            values = [None if value is None else json_text(json.loads(value)) for value in values]
        columns.append(values)
    types = pa.schema(schema)
    arrays = [pa.array(values, of.type) for values, of in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=types)
