"""A graph of columns as events of OpenLineage: one `JobEvent` for each dataset that is made.

A `JobEvent` says what a job reads and writes by its definition, without a run. Specification
2-0-2, facets `schema` 1-2-0 and `columnLineage` 1-2-0: https://openlineage.io/spec/2-0-2/
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from polynya import __version__
from polynya.derived.column_graph import ColumnGraph, GraphColumn, GraphDataset
from polynya.derived.lineage import ColumnOrigins, LineageKind

PRODUCER: Final = f"urn:polynya:{__version__}"
_SPEC: Final = "https://openlineage.io/spec"
_EVENT: Final = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/JobEvent"
_SCHEMA: Final = f"{_SPEC}/facets/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet"
_LINEAGE: Final = (
    f"{_SPEC}/facets/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet"
)


def job_events(graph: ColumnGraph, namespace: str, at: datetime) -> Iterator[dict[str, Any]]:
    """The events of a graph, in the order of its datasets; `at` is the time of each.

    Columns whose origins are not known are in the schema of their dataset, and not in its column
    lineage.
    """
    for dataset in graph.datasets.values():
        if dataset.kind == "source":
            continue
        inputs = [graph.datasets[name] for name in dataset.reads if name in graph.datasets]
        yield {
            "eventTime": at.astimezone(UTC).isoformat(),
            "producer": PRODUCER,
            "schemaURL": _EVENT,
            "job": {"namespace": namespace, "name": f"{dataset.task}.{dataset.name}"},
            "inputs": [
                {"namespace": namespace, "name": one.name, "facets": {"schema": _schema(one)}}
                for one in inputs
            ],
            "outputs": [
                {
                    "namespace": namespace,
                    "name": dataset.name,
                    "facets": {
                        "schema": _schema(dataset),
                        "columnLineage": _lineage(dataset, namespace),
                    },
                }
            ],
        }


def _schema(dataset: GraphDataset) -> dict[str, Any]:
    fields = [
        {"name": column.name, **({} if column.type is None else {"type": column.type})}
        for column in dataset.columns
    ]
    return {"_producer": PRODUCER, "_schemaURL": _SCHEMA, "fields": fields}


def _lineage(dataset: GraphDataset, namespace: str) -> dict[str, Any]:
    known = [column for column in dataset.columns if not column.origins.unknown]
    facet: dict[str, Any] = {
        "_producer": PRODUCER,
        "_schemaURL": _LINEAGE,
        "fields": {
            column.name: {"inputFields": _inputs(column.origins, namespace, column)}
            for column in known
            if column.origins.inputs
        },
    }
    if dataset.rows.inputs and not dataset.rows.unknown:
        facet["dataset"] = _inputs(dataset.rows, namespace, None)
    return facet


def _inputs(
    origins: ColumnOrigins, namespace: str, column: GraphColumn | None
) -> list[dict[str, Any]]:
    masked = column is not None and column.masked_by is not None
    return [
        {
            "namespace": namespace,
            "name": name,
            "field": field,
            "transformations": [_transformation(kind, masked=masked) for kind in sorted(kinds)],
        }
        for (name, field), kinds in sorted(origins.inputs.items())
    ]


def _transformation(kind: LineageKind, *, masked: bool) -> dict[str, Any]:
    if not kind.is_direct:
        return {"type": "INDIRECT", "subtype": kind.value}
    if masked:
        return {"type": "DIRECT", "subtype": LineageKind.TRANSFORMATION.value, "masking": True}
    return {"type": "DIRECT", "subtype": kind.value}
