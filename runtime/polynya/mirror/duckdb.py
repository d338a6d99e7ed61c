"""The live views in DuckDB's SQL, made from what Trino gets.

A view reads one metadata file of its table, because DuckDB knows no catalog of ours: it shows the
table as of the commit that wrote the file.
"""

from __future__ import annotations

from typing import Final

import sqlglot
from sqlglot import exp

from polynya.lake.fold.shape import Shape
from polynya.mirror.trino import View, trino_views
from polynya.model.config.dataset import ResolvedDataset

_STORED: Final = "__stored_rows"
_PARTITIONS: Final = "'current', 'prior', 'changes', 'retained'"


def duckdb_views(dataset: ResolvedDataset, shape: Shape, metadata: str) -> list[View]:
    """The views of a dataset over the table whose metadata file is at `metadata`.

    Rows and values are those of the views for Trino: instants are times of UTC without a zone.

    Raises:
        OperationError: the SQL has no translation (POLYNYA-VIEW-004).
    """
    internal = dataset.relations.internal_table.lower()
    return [
        View(view.name, view.columns, _translated(view.sql, internal, metadata))
        for view in trino_views(dataset, shape)
    ]


def duckdb_sql(trino: str, internal: str, stored: str) -> str:
    """A view in DuckDB's SQL; for the table `internal` it reads the relation `stored`."""

    def adapted(node: exp.Expr) -> exp.Expr:
        match node:
            case exp.SHA():
                # DuckDB gives the hash as text.
                return exp.Unhex(this=node.copy())
            case exp.Table() if node.db and node.name == internal:
                return exp.Table(this=exp.to_identifier(stored), alias=node.args.get("alias"))
            case _:
                return node

    return sqlglot.parse_one(trino, read="trino").transform(adapted).sql("duckdb")


def _translated(trino: str, internal: str, metadata: str) -> str:
    view = duckdb_sql(trino, internal, _STORED)
    place = exp.Literal.string(metadata).sql("duckdb")
    # Materialized: DuckDB 1.4 skips files without statistics of a column that has to be NULL.
    return (
        f"WITH {_STORED} AS MATERIALIZED (SELECT * FROM iceberg_scan({place}) "
        f"WHERE hdr__partition IN ({_PARTITIONS}))\n{view}"
    )
