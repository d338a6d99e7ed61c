"""A view in the form in which Athena and Trino's Hive connector keep theirs in the Glue catalog.

The SQL stands in Base64 in a comment, with the names and types of its columns; the table's own
columns have Hive's types. The form is that of Trino's `HiveViewCodec`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any, Final

from polynya.mirror.trino import View
from polynya.mirror.trino_types import glue_type, shown_type

#: Parameter by which our views are told from others, and an old definition from a new one.
DEFINITION: Final = "polynya.definition"

#: What Glue takes as the text of a view, in characters (AWS Glue web API, TableInput).
MAX_TEXT: Final = 409_600


def table_input(view: View, schema: str) -> dict[str, Any]:
    """The `TableInput` of a view in the Glue database `schema`."""
    definition = {
        "originalSql": view.sql,
        "catalog": "awsdatacatalog",
        "schema": schema,
        "columns": [
            {"name": name.lower(), "type": shown_type(kind)} for name, kind in view.columns.items()
        ],
        # With the rights of who asks; a view has an owner only if it runs with those of the owner.
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
