"""Whether a REST catalog refuses commits whose conditions are not met, tried on a table of its own.

Every commit of the engine has the condition that the table still has the snapshot that the commit
is based on (docs/adr/0007-one-commit-per-step.md). A catalog that ignores it loses commits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    RESTError,
)
from pyiceberg.table import Table
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, SetPropertiesUpdate

from polynya.lake.warehouse.check import plain_path
from polynya.lake.warehouse.rest_catalog import asked, open_rest_catalog
from polynya.model.config.target import ResolvedTarget
from polynya.model.error_catalogue.warehouse import CATALOG_UNCONDITIONAL

#: Tables of a probe are called so, with a random end.
PREFIX: Final = "polynya_probe_"


@dataclass(frozen=True, slots=True)
class Probed:
    """What was found: where the catalog put the table, and whether it gave credentials for it."""

    location: str
    has_vended: bool


def probe_commits(
    target: ResolvedTarget, catalog: str, schema: str, token: Callable[[], str] | None = None
) -> Probed:
    """Try two commits on one base; the second has to be refused. The table is dropped.

    The schema is made if there is none, and stays. One row is written and read as readers do.

    Raises:
        OperationError: the catalog took the second commit (POLYNYA-LAKE-065).
        DependencyError: it does not answer, or refuses (POLYNYA-LAKE-062 to 064).
    """
    assert target.rest is not None, "the catalog is behind REST"
    client = open_rest_catalog(target, catalog)
    named = (schema, PREFIX + (token() if token is not None else uuid4().hex[:12]))
    row = pa.table({"probe": pa.array([1], pa.int64())})
    with asked(target.rest):
        with suppress(NamespaceAlreadyExistsError):
            client.create_namespace(schema)
        table = client.create_table(named, row.schema)
        try:
            table.append(row)
            if table.scan().to_arrow().num_rows != 1 or _takes_stale(client, table):
                raise CATALOG_UNCONDITIONAL(where=target.rest.text)
            return Probed(table.location(), _has_vended(table))
        finally:
            _remove(client, named, table.location())


def _takes_stale(client: RestCatalog, table: Table) -> bool:
    """Commit as a process would that has seen the table without a snapshot."""
    stale = (
        AssertTableUUID(uuid=table.metadata.table_uuid),
        AssertRefSnapshotId(ref="main", snapshot_id=None),
    )
    try:
        client.commit_table(table, stale, (SetPropertiesUpdate(updates={"polynya.probe": "2"}),))
    except CommitFailedException:
        return False
    return True


def _has_vended(table: Table) -> bool:
    return "s3.session-token" in table.io.properties or "s3.access-key-id" in table.io.properties


def _remove(client: RestCatalog, named: tuple[str, str], location: str) -> None:
    try:
        client.drop_table(named, purge_requested=True)
    except NoSuchTableError:
        return
    except RESTError:
        # Some catalogs leave the files to others.
        client.drop_table(named)
    if (folder := plain_path(location)) is not None:
        for path in (folder / "data", folder / "metadata", folder):
            with suppress(OSError):
                path.rmdir()
