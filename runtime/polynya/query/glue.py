"""Publish live views in the Glue catalog, in the form that Athena and Trino store.

A comment holds the SQL in Base64, with the names and types of its columns; the table's own columns
have Hive's types. The form is that of Trino's `HiveViewCodec`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any, Final

from polynya.lake.fold.shape import Shape
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.operation import VIEW_TOO_LONG
from polynya.model.names import Dialect
from polynya.query.dialects import EngineView, views_in
from polynya.query.views import glue_type, shown_type
from polynya.store.aws.glue import GlueViews

#: Parameter that tells our views from others, and an old definition from a new one.
DEFINITION: Final = "polynya.definition"

#: What Glue takes as the text of a view, in characters (AWS Glue web API, TableInput).
MAX_TEXT: Final = 409_600


def table_input(view: EngineView, schema: str) -> dict[str, Any]:
    """The `TableInput` of a view in the Glue database `schema`."""
    definition = {
        "originalSql": view.sql,
        "catalog": "awsdatacatalog",
        "schema": schema,
        "columns": [
            {"name": name.lower(), "type": shown_type(kind)} for name, kind in view.columns.items()
        ],
        # With the rights of the caller: a view has an owner only if it runs with the owner's.
        "runAsInvoker": True,
        "properties": {},
    }
    text = json.dumps(definition, separators=(",", ":")).encode()
    columns = [
        {"Name": name.lower(), "Type": glue_type(kind)} for name, kind in view.columns.items()
    ]
    return {
        "Name": view.name,
        "TableType": "VIRTUAL_VIEW",
        "Parameters": {
            "presto_view": "true",
            "comment": "Presto View",
            DEFINITION: hashlib.sha256(text).hexdigest()[:32],
        },
        "StorageDescriptor": {"Columns": columns, "Location": "", "SerdeInfo": {}},
        "PartitionKeys": [],
        "ViewOriginalText": f"/* Presto View: {base64.b64encode(text).decode()} */",
        "ViewExpandedText": "/* Presto View */",
    }


def athena_views(dataset: ResolvedDataset, shape: Shape) -> list[EngineView]:
    """The views over the internal table as Glue has it. Raises as `views_in` does."""
    schema, name = dataset.relations.internal_schema, dataset.relations.internal_table
    table = Dialect.ATHENA.quote(schema.lower(), name.lower())
    return views_in(Dialect.ATHENA, dataset, shape, table)


class GluePublisher:
    """The views of a target's datasets in its Glue catalog, for Athena and Trino."""

    def __init__(self, target: ResolvedTarget) -> None:
        self._glue = GlueViews(target.aws, target.catalog_id, DEFINITION)

    def publish(self, dataset: ResolvedDataset, shape: Shape) -> list[str]:
        """Make the views that are not there or have changed; return their names.

        Raises:
            OperationError: a name is taken (POLYNYA-VIEW-001), or a view is too long for Glue
                (POLYNYA-VIEW-003).
            PolynyaError: what `GlueViews.publish` raises.
        """
        views = athena_views(dataset, shape)
        schema = dataset.relations.schema
        changed = [view.name for view in views if self.publish_view(view, schema)]
        return [f"{schema.lower()}.{name}" for name in changed]

    def publish_view(self, view: EngineView, schema: str) -> bool:
        """Make a view of a schema where it is not there or has changed; whether it was made.

        Raises as `publish`.
        """
        database = schema.lower()
        made = table_input(view, database)
        if len(made["ViewOriginalText"]) > MAX_TEXT:
            raise VIEW_TOO_LONG(where=f"{database}.{view.name}", view=f"{database}.{view.name}")
        return self._glue.publish(database, made)

    def stale(self, dataset: ResolvedDataset, shape: Shape) -> list[str]:
        """The views that are missing, or are not what `publish` would make. Writes nothing."""
        database = dataset.relations.schema.lower()
        names = []
        for view in athena_views(dataset, shape):
            wanted = table_input(view, database)["Parameters"][DEFINITION]
            stored = self._glue.find(database, view.name)
            if stored is None or stored.parameters.get(DEFINITION) != wanted:
                names.append(f"{database}.{view.name}")
        return names
